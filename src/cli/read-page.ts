import { BOOKMARK_FIELDS } from '../domain/bookmark-fields.ts';
import { decodeText, readMarkup } from '../formats/markup.ts';
import { toLine } from './display-text.ts';

/**
 * Reads the title and the description of a web page from the user's own computer. The page is not trusted: its time, its
 * size and its redirects are limited, and it gets no credentials.
 */

/** What a page says about itself. A field is undefined if the page does not have it. */
export interface PageTexts {
  title?: string | undefined;
  description?: string | undefined;
}

/** How long reading a page may take, with all redirects, in ms. */
const LIMIT_MS = 5_000;

/** The page is read up to this number of bytes, after decompression. */
const MAX_BYTES = 1_048_576;

const MAX_REDIRECTS = 3;

const HTML_TYPE = /^(text\/html|application\/xhtml\+xml)\s*(;|$)/i;

/**
 * Reads a page. Rejects with an `Error` that says why if the page cannot be read or is not HTML. If the time is over
 * before the page ends, uses what has arrived. If `signal` is aborted, rejects.
 */
export async function readPage(url: string, signal: AbortSignal): Promise<PageTexts> {
  const timeout = AbortSignal.timeout(LIMIT_MS);
  const limited = AbortSignal.any([signal, timeout]);
  try {
    const response = await openPage(url, limited);
    const bytes = await readHead(response, limited);
    signal.throwIfAborted();
    const texts = findTexts(decode(bytes, response.headers.get('content-type') ?? ''));
    if (texts.title === undefined && timeout.aborted) throw timeout.reason;
    return texts;
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) throw new Error(`it took longer than ${LIMIT_MS / 1_000} s`);
    // `fetch` says only "fetch failed". The cause says why.
    throw error instanceof TypeError && error.cause instanceof Error ? error.cause : error;
  }
}

/** Requests a page and follows its redirects. Resolves with a response that has HTML. */
async function openPage(url: string, signal: AbortSignal): Promise<Response> {
  let next = new URL(url);
  for (let redirects = 0; ; redirects += 1) {
    if (!/^https?:$/.test(next.protocol))
      throw new Error('it redirects to an address that is not http or https');
    // `fetch` refuses credentials in a url. They are the user's, and are not sent to read a title.
    [next.username, next.password] = ['', ''];
    const headers = { accept: 'text/html,application/xhtml+xml', 'user-agent': 'bookmarks-cli/1' };
    const response = await fetch(next, { signal, headers, redirect: 'manual' });
    const location = response.headers.get('location');
    const isRedirect = [301, 302, 303, 307, 308].includes(response.status) && location !== null;
    if (!isRedirect) return requireHtml(response);
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw new Error(`it redirects more than ${MAX_REDIRECTS} times`);
    next = new URL(location, next);
  }
}

async function requireHtml(response: Response): Promise<Response> {
  const type = response.headers.get('content-type') ?? 'text/html';
  if (response.ok && HTML_TYPE.test(type)) return response;
  await response.body?.cancel();
  throw new Error(response.ok ? 'it is not HTML' : `it has the status ${response.status}`);
}

/** Matches the end of the part of a page that contains its title. */
const HEAD_END = /<\/head|<body/i;

/** Reads the body up to the end of its head, `MAX_BYTES`, or the moment when `signal` is aborted. */
async function readHead({ body }: Response, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let tail = '';
  try {
    for await (const chunk of body ?? []) {
      chunks.push(chunk.subarray(0, MAX_BYTES - size));
      size += chunk.length;
      // All encodings that pages use write these tags as ASCII. The tail finds a tag that two chunks share.
      const text = tail + Buffer.from(chunk).toString('latin1');
      if (size >= MAX_BYTES || HEAD_END.test(text)) break;
      tail = text.slice(-8);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return Buffer.concat(chunks);
}

/** Matches the encoding in a `Content-Type` header or in a `<META>` element. */
const CHARSET = /charset\s*=\s*["']?\s*(?<label>[\w:.-]{1,40})/i;

/**
 * Decodes a page as browsers do: by its byte order mark, the header, or its `<META>` element. A page that names no
 * encoding, or one that does not exist, is UTF-8 if that is possible, and otherwise windows-1252.
 */
function decode(bytes: Uint8Array, contentType: string): string {
  const start = Buffer.from(bytes.subarray(0, 1_024)).toString('latin1');
  const meta = /<meta[^>]*>/gi;
  const inPage = (start.match(meta) ?? [])
    .map((element) => CHARSET.exec(element)?.groups?.label)
    .find(Boolean);
  const label = CHARSET.exec(contentType)?.groups?.label ?? inPage;
  const isMarked = /^(\u00ef\u00bb\u00bf|\u00fe\u00ff|\u00ff\u00fe)/.test(start);
  if (label !== undefined && !isMarked) {
    try {
      return new TextDecoder(label).decode(bytes);
    } catch {
      // The encoding does not exist. The page is decoded as if it named none.
    }
  }
  if (start.startsWith('\u00ff\u00fe')) return new TextDecoder('utf-16le').decode(bytes);
  if (start.startsWith('\u00fe\u00ff')) return new TextDecoder('utf-16be').decode(bytes);
  try {
    // With `stream`, a character that the limit of bytes has cut is no error.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** The elements that tell about a page, and those whose content is no part of its text. */
const READ_TAGS: ReadonlySet<string> = new Set(['title', 'meta', 'svg', 'script', 'style']);

/** Removes comments, in time that grows with the length of the text. */
const removeComments = (html: string): string =>
  html
    .split('<!--')
    .map((part, i) => {
      const end = part.indexOf('-->');
      if (i === 0) return part;
      return end === -1 ? '' : part.slice(end + 3);
    })
    .join('');

/** Finds the first title and description of a page. */
function findTexts(html: string): PageTexts {
  const found = new Map<string, string>();
  const keepFirst = (key: string, text: string) => found.has(key) || found.set(key, text);
  /** The element whose content is being read: a title, or one to skip. */
  let inside: string | undefined;
  for (const part of readMarkup(removeComments(html), READ_TAGS)) {
    if (typeof part === 'string') {
      if (inside === 'title') keepFirst('title', decodeText(part));
    } else if (inside !== undefined) {
      if (part.isClosing && part.name === inside) inside = undefined;
    } else if (part.name !== 'meta') {
      if (!part.isClosing) inside = part.name;
    } else {
      const { name, property, content = '' } = part.attributes;
      keepFirst((name ?? property ?? '').toLowerCase(), content);
    }
  }
  const firstOf = (names: string[], limit: number) =>
    names.map((name) => cleanText(found.get(name) ?? '', limit)).find((text) => text !== '');
  return {
    title: firstOf(['title', 'og:title', 'twitter:title'], BOOKMARK_FIELDS.title.max),
    description: firstOf(
      ['description', 'og:description', 'twitter:description'],
      BOOKMARK_FIELDS.comment.max,
    ),
  };
}

/** Removes control characters, joins lines, and cuts a text to `limit` code points. */
const cleanText = (text: string, limit: number): string =>
  [...toLine(text).replace(/\s+/gu, ' ')].slice(0, limit).join('').trim();
