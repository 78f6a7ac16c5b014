import { decodeHTML, decodeHTMLAttribute } from 'entities/decode';

/**
 * Splits a bookmark file into tags and texts. Programs write titles and descriptions into these files without escaping.
 * So only the tags that a bookmark file consists of are tags. Everything else is text, for example `<script>`, `<!--`
 * and `<T>`. HTML parsers would treat the rest of the file as the content of such an element.
 */

export interface Tag {
  /** In lower case. */
  name: string;
  isClosing: boolean;
  /** The names are in lower case. The values are decoded. */
  attributes: Record<string, string>;
  /** Whether the file ends inside the tag. */
  isTruncated: boolean;
  /** Whether the tag is followed by another tag or by the file's end, not by text. */
  precedesTag: boolean;
}

const TAG = /<(?<slash>\/?)(?<name>[a-z][a-z\d]*)(?=[\s>/]|$)/gi;

/** Matches what follows the quote that closes a value: more attributes, or the end of the tag. */
const AFTER_VALUE = /\s*(?:[a-z_][\w:-]*\s+)*(?:(?:[a-z_][\w:-]*)?\s*\/?>|[a-z_][\w:-]*\s*=|$)/.source;

/**
 * A value in double quotes may contain quotes, because some programs do not escape them. Such a quote is not followed by
 * what follows a value.
 */
const WITH_QUOTES = `[^"<>]*(?:"(?!${AFTER_VALUE})[^"<>]*)+(?="${AFTER_VALUE})`;

const ATTRIBUTE = new RegExp(
  `[\\s/]*(?<name>[^\\s=<>"'/][^\\s=<>]*)` +
    `(?:\\s*=\\s*(?:"(?<double>${WITH_QUOTES}|[^"]*)"|'(?<single>[^']*)'|(?<bare>[^\\s>]*)))?`,
  'iy',
);

/**
 * Whether the closing quote of a value is missing. The quote that seems to close the value then opens the value of an
 * attribute in a later tag.
 */
const isUnclosed = (value: string): boolean => value.includes('<') && value.trimEnd().endsWith('=');

const NO_TEXT = /\s*(?:<|$)/y;

/** Yields the tags with the given names and the texts between them, in order. Texts are not decoded yet. */
export function* readMarkup(markup: string, names: ReadonlySet<string>): Generator<Tag | string> {
  let position = 0;
  TAG.lastIndex = 0;
  for (let match = TAG.exec(markup); match !== null; match = TAG.exec(markup)) {
    const name = match.groups?.name?.toLowerCase() ?? '';
    if (!names.has(name)) continue;
    if (match.index > position) yield markup.slice(position, match.index);
    const { attributes, end } = readAttributes(markup, TAG.lastIndex);
    position = markup[end] === '>' ? end + 1 : end;
    NO_TEXT.lastIndex = position;
    const precedesTag = NO_TEXT.test(markup);
    const isTruncated = end >= markup.length;
    yield { name, isClosing: match.groups?.slash === '/', attributes, isTruncated, precedesTag };
    // The code that takes the tags may read other markup meanwhile, which moves `lastIndex`.
    TAG.lastIndex = position;
  }
  if (position < markup.length) yield markup.slice(position);
}

/** Reads the attributes of a tag. `end` is the index of the `>`, of the `<` of the next tag, or of the file's end. */
function readAttributes(markup: string, start: number): { attributes: Record<string, string>; end: number } {
  const attributes: Record<string, string> = {};
  let end = start;
  while (end < markup.length && !/[<>]/.test(markup[end] ?? '')) {
    ATTRIBUTE.lastIndex = end;
    const { name, double, single, bare } = ATTRIBUTE.exec(markup)?.groups ?? {};
    if (name === undefined) {
      // A quote, an equals sign, or white space before the end of the tag.
      end += 1;
      continue;
    }
    end = ATTRIBUTE.lastIndex;
    let value = double ?? single ?? bare ?? '';
    const quoted = double ?? single;
    if (quoted !== undefined && isUnclosed(quoted)) {
      value = /^[^\s>]*/.exec(quoted)?.[0] ?? '';
      end += value.length - quoted.length - 1;
    }
    attributes[name.toLowerCase()] ??= decodeHTMLAttribute(value);
  }
  return { attributes, end };
}

/** Decodes the character references in a text, such as `&amp;`. */
export const decodeText = (text: string): string => decodeHTML(text);
