/**
 * Whether keyboard shortcuts are on. Users of speech input, and users who press keys by accident, can turn them off
 * (WCAG 2.1.4). The setting applies to all tabs of this browser.
 */

const KEY = 'shortcuts';

export const shortcutsAreOn = (): boolean => localStorage.getItem(KEY) !== 'off';

export function setShortcuts(isOn: boolean): void {
  if (isOn) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, 'off');
}

/** Tells assistive technology which key is the shortcut of an element, while shortcuts are on. */
export function nameKey(element: Element, key: string): void {
  const show = () => {
    if (shortcutsAreOn()) element.setAttribute('aria-keyshortcuts', key);
    else element.removeAttribute('aria-keyshortcuts');
  };
  show();
  addEventListener('storage', show);
}
