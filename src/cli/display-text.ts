/** Makes text from users safe for a terminal. */

/** Matches one or more control characters, or characters that change the direction of text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]+/g;

/** Matches one of the characters of `CONTROLS`, but no line feed and no tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
const CONTROLS_IN_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Replaces control characters, except line feeds and tabs, with JSON's escapes. So JSON text keeps its value. */
export const writeOutControls = (text: string): string =>
  text.replace(CONTROLS_IN_LINES, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Replaces line breaks and other control characters with spaces, so that a title takes one line. */
export const toLine = (text: string): string => text.replace(CONTROLS, ' ').trim();

/** Matches a character that takes two columns of a terminal. */
const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|\ufe0f/u;

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

const graphemeWidth = (grapheme: string): number => (WIDE.test(grapheme) ? 2 : 1);

/** Returns the number of terminal columns that a text takes. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** Fits a text to an exact width: pads it with spaces or cuts it with an ellipsis. */
export function fitToWidth(text: string, width: number): string {
  const textWidth = displayWidth(text);
  if (textWidth <= width) return text + ' '.repeat(width - textWidth);
  // One column is for the ellipsis.
  const maxPrefixWidth = width - 1;
  let prefix = '';
  let prefixWidth = 0;
  for (const { segment } of segmenter.segment(text)) {
    const nextWidth = prefixWidth + graphemeWidth(segment);
    if (nextWidth > maxPrefixWidth) break;
    prefix += segment;
    prefixWidth = nextWidth;
  }
  // One column is left over if the next character needs two.
  return `${prefix}…${' '.repeat(maxPrefixWidth - prefixWidth)}`;
}

/** Formats a count with its noun: `1 bookmark`, `2,000 bookmarks`. */
export const formatCount = (count: number, noun: string): string =>
  `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
