/** The languages of the page. Each name is in its own language. */
export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const;

type Language = keyof typeof LANGUAGES;

const baseOf = (tag: string): string => tag.replace(/-.*/, '');
const isKnown = (base: string): base is Language => Object.hasOwn(LANGUAGES, base);

/**
 * The page's language: the one that the user has chosen in the settings, else the first of the browser's languages that
 * the page has, else English.
 */
export const language: Language =
  [localStorage.getItem('language') ?? '', ...navigator.languages].map(baseOf).find(isKnown) ?? 'en';

/**
 * The locales for numbers and dates: first the variants of the page's language that the browser prefers, for example
 * `de-AT`, then the language itself.
 */
export const locales: string[] = [...navigator.languages.filter((tag) => baseOf(tag) === language), language];

const numbers = new Intl.NumberFormat(locales);

/** Formats a number in the user's locale. */
export const number = (value: number): string => numbers.format(value);
