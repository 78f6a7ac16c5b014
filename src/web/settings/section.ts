import { button, make, refill } from '../dom.ts';
import { describeError, hasCode } from '../errors.ts';

/** Creates a section of the settings with a heading, its purpose and its content. */
export function section(
  id: string,
  title: string,
  lead: string,
  ...content: (Node | false | undefined)[]
): HTMLElement {
  return make(
    'section',
    { id, 'aria-label': title },
    make('h2', {}, title),
    make('p', { class: 'lead' }, lead),
    ...content,
  );
}

/** Runs the actions of a section, and shows their errors. */
interface Failure {
  readonly element: HTMLElement;
  /** Shows an error, or a text about an error. Undefined removes it. */
  say(error: unknown): void;
  /** Runs the action of a form or a button. Disables the button meanwhile, and shows the error if the action fails. */
  run(button: HTMLButtonElement, work: () => Promise<unknown>): Promise<void>;
  /** Creates a button that runs an action. */
  button(text: string, kind: 'plain' | 'danger', work: () => Promise<unknown>): HTMLButtonElement;
}

export function failure(describe = describeError): Failure {
  const element = make('p', { class: 'error', role: 'alert' });
  const say = (error: unknown) =>
    refill(element, error === undefined || typeof error === 'string' ? error : describe(error));
  const run: Failure['run'] = async (pressed, work) => {
    say(undefined);
    pressed.disabled = true;
    try {
      await work();
    } catch (error) {
      say(error);
    } finally {
      pressed.disabled = false;
    }
  };
  return {
    element,
    say,
    run,
    button(text, kind, work) {
      const own = button(text, () => void run(own, work), { kind });
      return own;
    },
  };
}

/**
 * Creates an entry for a session, a token or a passkey: its name, facts about it, and a button that ends or removes it.
 */
export const entry = (name: string, facts: string[], end: HTMLElement, badge?: Node | false): HTMLElement =>
  make(
    'li',
    {},
    make(
      'div',
      {},
      make('strong', { dir: 'auto' }, name),
      badge,
      make('p', { class: 'hint' }, facts.join(' · ')),
    ),
    end,
  );

/** Ignores `NOT_FOUND`, which means that the token or session has already ended. Throws any other error. */
export function ignoreGone(error: unknown): void {
  if (!hasCode(error, 'NOT_FOUND')) throw error;
}

/** Downloads a file. */
export function download(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  const link = make('a', { href, download: name });
  link.click();
  // The browser may read the file after `click` has returned.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
