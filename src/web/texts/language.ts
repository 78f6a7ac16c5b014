/** The languages of the page, each by its own name. */
export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const;

type Language = keyof typeof LANGUAGES;

const baseOf = (tag: string): string => tag.replace(/-.*/, '');
const isKnown = (base: string): base is Language => Object.hasOwn(LANGUAGES, base);

/**
 * The page's language: the one chosen in the settings, else the first of the browser's that the page has, else
 * English.
 */
export const language: Language =
  [localStorage.getItem('language') ?? '', ...navigator.languages].map(baseOf).find(isKnown) ?? 'en';

/** How numbers and dates are formatted: the browser's own variants of the page's language come first. */
export const locales: string[] = [...navigator.languages.filter((tag) => baseOf(tag) === language), language];

const numbers = new Intl.NumberFormat(locales);

/** A number as the reader writes it. */
export const number = (value: number): string => numbers.format(value);
