/**
 * Whether single keys do something by themselves. Who speaks to a computer, or touches keys unasked, can switch them off
 * (WCAG 2.1.4); it holds for this browser, in all of its tabs at once.
 */

const KEY = 'shortcuts';

export const shortcutsAreOn = (): boolean => localStorage.getItem(KEY) !== 'off';

export function setShortcuts(isOn: boolean): void {
  if (isOn) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, 'off');
}

/** Names an element's key to assistive technology, while keys do something. */
export function nameKey(element: Element, key: string): void {
  const show = () => {
    if (shortcutsAreOn()) element.setAttribute('aria-keyshortcuts', key);
    else element.removeAttribute('aria-keyshortcuts');
  };
  show();
  addEventListener('storage', show);
}
