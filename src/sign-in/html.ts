/** Text that is already HTML. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');

type Value = Html | string | undefined | readonly Html[];

function render(value: Value): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return escapeText(value);
  return value instanceof Html ? value.text : value.map(({ text }) => text).join('');
}

/** Builds HTML. Escapes values that are not HTML, so that they are safe between tags and in quoted attributes. */
export const html = (texts: TemplateStringsArray, ...values: readonly Value[]): Html =>
  new Html(texts.map((text, at) => text + render(values[at])).join(''));
