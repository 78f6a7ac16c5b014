import type { Bookmark } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';

/**
 * Writes the bookmark file that browsers and other services import, with tags as Pinboard and linkding write them.
 */

export const NETSCAPE_HEAD = `<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
<DL><p>
`;

export const NETSCAPE_END = '</DL><p>\n';

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);

/** Seconds beyond it would be read as milliseconds: it is in the year 5138. */
const LAST_SECOND = 99_999_999_999;

/** Seconds since 1970; what no reader would take for these seconds, as the text of the time. */
function formatSeconds(time: string): string {
  const seconds = Math.floor(Date.parse(time) / 1_000);
  return seconds === 0 || Math.abs(seconds) > LAST_SECOND ? time : String(seconds);
}

/** Whether a browser may be given a url as a link: http and https alone, whatever a service sends. */
export const isWebUrl = (url: string): boolean => parseWebUrl(url) !== null;

/**
 * The lines of a bookmark. Dates lose their milliseconds. Commas separate tags here, so a comma in a tag's name
 * becomes a blank.
 */
export function formatNetscape({ url, title, comment, tags, created_at, updated_at }: Bookmark): string {
  const names = tags.map(({ name }) => name.replaceAll(',', ' ')).join(',');
  const link =
    `    <DT><A HREF="${escapeHtml(url)}" ADD_DATE="${formatSeconds(created_at)}" ` +
    `LAST_MODIFIED="${formatSeconds(updated_at)}" TAGS="${escapeHtml(names)}">${escapeHtml(title)}</A>\n`;
  return comment === '' ? link : `${link}    <DD>${escapeHtml(comment)}\n`;
}
