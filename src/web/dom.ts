/** Creates elements. Strings become text nodes, so the browser never interprets the content of a bookmark as HTML. */

type Child = Node | string | false | null | undefined;

/**
 * A function that handles an event. TypeScript compares the parameters of methods less strictly than those of
 * functions. So this type, which comes from a method, also accepts a function that takes only a `MouseEvent`, for
 * example.
 */
type Listener = { listen(event: Event): void }['listen'];

/**
 * The attributes of an element by name. `true` sets an empty attribute. False and undefined set no attribute. A
 * function becomes a listener, and the name of its attribute is `on` and the event's name, for example `onclick`.
 */
type Attributes = Record<string, string | number | boolean | undefined | Listener>;

/** Creates an element. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key.slice('on'.length), value);
    else if (value !== false && value !== undefined)
      element.setAttribute(key, value === true ? '' : String(value));
  }
  put(element, ...children);
  return element;
}

/** Appends children. Skips false, null, undefined and empty texts. */
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

/** Draws an SVG image, a square with a side of `size` units. `d` is the path, in the syntax of SVG. */
export function drawPath(size: number, d: string, attributes: Record<string, string>): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  const path = document.createElementNS(SVG, 'path');
  svg.setAttribute('viewBox', `0 0 ${size} ${size}`);
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  path.setAttribute('d', d);
  svg.append(path);
  return svg;
}

/** Creates an icon. It is hidden from screen readers, because the text or label next to it says the same. */
export const icon = (name: keyof typeof ICONS): SVGSVGElement =>
  drawPath(24, ICONS[name], { class: 'icon', 'aria-hidden': 'true' });

/** Creates a button with a text and, optionally, an icon before it. */
export const button = (
  text: string,
  onclick: (event: MouseEvent) => void,
  { kind = 'plain', icon: name }: { kind?: string; icon?: keyof typeof ICONS } = {},
): HTMLButtonElement =>
  make('button', { type: 'button', class: kind, onclick }, name && icon(name), make('span', {}, text));

/** Creates the button that submits a form. */
export const submitButton = (text: string, kind = 'primary'): HTMLButtonElement =>
  make('button', { type: 'submit', class: kind }, text);

/** Puts buttons and fields in a row. */
export const buttonRow = (...children: Child[]): HTMLElement =>
  make('div', { class: 'buttons' }, ...children);

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

/**
 * Puts a label above an input, and a hint below it. If the input is inside another element, `shown` is that element.
 */
export function field(label: string, input: HTMLElement, hint?: string, shown = input): HTMLElement {
  input.id ||= newId();
  const hintElement = hint === undefined ? undefined : make('p', { class: 'hint', id: newId() }, hint);
  if (hintElement) input.setAttribute('aria-describedby', hintElement.id);
  return make('div', { class: 'field' }, make('label', { for: input.id }, label), shown, hintElement);
}

/** Creates a search field that filters a list. */
export const searchField = (label: string, oninput: () => void): HTMLInputElement =>
  make('input', {
    type: 'search',
    'aria-label': label,
    placeholder: label,
    dir: 'auto',
    autocomplete: 'off',
    oninput,
  });

/** Creates a checkbox or a radio button with its label after it. */
export const check = (input: HTMLInputElement, label: string): HTMLElement =>
  make('label', { class: 'check' }, input, label);

/**
 * Creates a form that calls `onSubmit` when the user submits it. The browser does not check the fields, and does not
 * leave the page. `kind` is the class of the form.
 */
export const makeForm = (kind: string, onSubmit: () => unknown, ...children: Child[]): HTMLFormElement =>
  make(
    'form',
    {
      class: kind,
      novalidate: true,
      onsubmit: (event: SubmitEvent) => {
        event.preventDefault();
        void onSubmit();
      },
    },
    ...children,
  );

interface Choice<Value> {
  readonly element: HTMLSelectElement;
  value: Value;
}

/** Creates a `<select>`. `options` contains, for each value, the text that the user sees. */
export function makeChoice<Value extends string>(
  options: Readonly<Record<Value, string>>,
  attributes: Attributes = {},
): Choice<Value> {
  const isValue = (text: string): text is Value => Object.hasOwn(options, text);
  const entries = Object.entries<string>(options);
  const element = make(
    'select',
    attributes,
    ...entries.map(([value, text]) => make('option', { value }, text)),
  );
  return {
    element,
    get value() {
      if (!isValue(element.value)) throw new TypeError(`no option ${element.value}`);
      return element.value;
    },
    set value(value) {
      element.value = value;
    },
  };
}

/** Creates a dialog with a heading. */
export const makeDialog = (title: string, ...content: Child[]): HTMLDialogElement =>
  make('dialog', { 'aria-label': title }, make('h2', {}, title), ...content);

/** Shows a dialog until it is closed. Resolves with the dialog's return value, which is empty if the user cancels. */
export function showDialog(dialog: HTMLDialogElement): Promise<string> {
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

/** Replaces the children of a list. If an old child had the focus, focuses the new element with the same label. */
export function redrawList(list: HTMLElement, ...children: Child[]): void {
  const focusedLabel = list.contains(document.activeElement) ? document.activeElement?.ariaLabel : undefined;
  refill(list, ...children);
  if (focusedLabel) list.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focusedLabel)}"]`)?.focus();
}
