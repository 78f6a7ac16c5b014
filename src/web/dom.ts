/** Creates elements. Text is always set as text, so the content of a bookmark never becomes markup. */

type Child = Node | string | false | null | undefined;

/**
 * The value of an attribute. `true` sets an empty attribute; false and undefined set none. A function listens to an
 * event.
 */
type Value = string | number | boolean | undefined | ((event: never) => void);

/** Creates an element. Functions, for example `onclick`, become event listeners. Other values become attributes. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  put(element, ...children);
  return element;
}

function setAttribute(element: Element, name: string, value: Value): void {
  if (typeof value === 'function') element.addEventListener(name.slice(2), value as (event: Event) => void);
  else if (value !== false && value !== undefined)
    element.setAttribute(name, value === true ? '' : String(value));
}

/** Appends children and skips those that are false, empty or undefined. */
export function put(element: Element, ...children: Child[]): void {
  for (const child of children) if (child) element.append(child);
}

/** Replaces all children of an element. */
export function refill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  put(element, ...children);
}

const SVG = 'http://www.w3.org/2000/svg';

/** The paths of the icons, drawn in a square of 24 by 24. */
const ICONS = {
  add: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  edit: 'M4 20h4L19 9l-4-4L4 16v4M13 7l4 4',
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14M16 16l4 4',
  tag: 'M4 12V5a1 1 0 0 1 1-1h7l8 8-8 8-8-8M8 8h.01',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  mark: 'M7 3h10v18l-5-4-5 4z',
} as const;

/** Creates an icon that is hidden from screen readers. Its button has a label. */
export function icon(name: keyof typeof ICONS): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  svg.classList.add('icon');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** Creates a button with a text and, optionally, an icon before it. */
export const button = (
  text: string,
  onclick: (event: MouseEvent) => void,
  { kind = 'plain', icon: name }: { kind?: string; icon?: keyof typeof ICONS } = {},
): HTMLButtonElement =>
  make('button', { type: 'button', class: kind, onclick }, name && icon(name), make('span', {}, text));

/** Creates a button that shows only an icon. */
export const iconButton = (
  name: keyof typeof ICONS,
  label: string,
  onclick: (event: MouseEvent) => void,
): HTMLButtonElement =>
  make(
    'button',
    { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick },
    icon(name),
  );

let ids = 0;

/** Returns an id that is unique in the page. */
export const newId = (): string => `e${++ids}`;

/** Creates a field with its label above it. */
export function field(label: string, input: HTMLElement, hint?: string): HTMLElement {
  input.id ||= newId();
  const hintElement = hint === undefined ? undefined : make('p', { class: 'hint', id: newId() }, hint);
  if (hintElement) input.setAttribute('aria-describedby', hintElement.id);
  return make('div', { class: 'field' }, make('label', { for: input.id }, label), input, hintElement);
}
