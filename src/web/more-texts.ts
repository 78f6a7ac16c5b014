import { language } from './texts/language.ts';
import { type MoreTexts, moreEn } from './texts/more-en.ts';

/** The texts of the sign-in, the settings, of the dialogs and of the offline page, in the user's language. */
export const moreTexts: MoreTexts = language === 'de' ? (await import('./texts/more-de.ts')).moreDe : moreEn;
