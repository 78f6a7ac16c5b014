import { en, type Texts } from './texts/en.ts';
import { language } from './texts/language.ts';

/**
 * The texts that the first load of the page needs, in the user's language. The other texts are in `more-texts.ts`. To
 * add a language, write its two files in `texts/`, and name it in `texts/language.ts`, here and in `more-texts.ts`.
 */
export const texts: Texts = language === 'de' ? (await import('./texts/de.ts')).de : en;

document.documentElement.lang = language;
