import { Parser } from 'htmlparser2';
import type { ForeignBookmark } from './entry.ts';
import { readDescription } from './netscape.ts';

/** Reads Pinboard's JSON and XML, the responses of its `posts/all`. `netscape.ts` reads its HTML. */

/** A post. `description` is the title and `extended` the text. A missing title or text is `false`. */
export interface PinboardPost {
  href: string;
  description?: unknown;
  extended?: unknown;
  time?: unknown;
  toread?: unknown;
  tags?: unknown;
}

const splitTags = (value: unknown): string[] => (typeof value === 'string' ? value.split(/\s+/) : []);

export const fromPost = ({
  href,
  description,
  extended,
  time,
  toread,
  tags,
}: PinboardPost): ForeignBookmark => ({
  url: href,
  title: description,
  comment: typeof extended === 'string' ? readDescription(extended) : [],
  tags: [...splitTags(tags), ...(toread === 'yes' ? ['toread'] : [])],
  createdAt: time,
});

/** Parses the posts of the XML format. */
export function parsePinboardXml(xml: string): ForeignBookmark[] {
  const bookmarks: ForeignBookmark[] = [];
  const parser = new Parser(
    {
      onopentag(name, { href, tag, ...attributes }) {
        if (name === 'post' && href !== undefined)
          bookmarks.push(fromPost({ ...attributes, href, tags: tag }));
      },
    },
    { xmlMode: true },
  );
  parser.end(xml);
  return bookmarks;
}
