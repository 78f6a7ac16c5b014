import type { Bookmark } from '../domain/resources.ts';

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

const epochSeconds = (time: string): number => Math.floor(Date.parse(time) / 1_000);

/** Whether a browser may be given a url as a link: http and https alone, whatever a service sends. */
export const isWebUrl = (url: string): boolean => /^https?:$/.test(URL.parse(url)?.protocol ?? '');

/**
 * The lines of a bookmark. Dates lose their milliseconds. Commas separate tags here, so a comma in a tag's name
 * becomes a blank.
 */
export function formatNetscape({ url, title, comment, tags, created_at, updated_at }: Bookmark): string {
  const names = tags.map(({ name }) => name.replaceAll(',', ' ')).join(',');
  const link =
    `    <DT><A HREF="${escapeHtml(url)}" ADD_DATE="${epochSeconds(created_at)}" ` +
    `LAST_MODIFIED="${epochSeconds(updated_at)}" TAGS="${escapeHtml(names)}">${escapeHtml(title)}</A>\n`;
  return comment === '' ? link : `${link}    <DD>${escapeHtml(comment)}\n`;
}
