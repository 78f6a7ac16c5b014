import type { ForeignBookmark } from './entry.ts';

/**
 * Reads linkding's JSON, the response of its `/api/bookmarks/`. `netscape.ts` reads the HTML that its settings page
 * exports.
 */

export interface LinkdingBookmark {
  url: string;
  title?: unknown;
  description?: unknown;
  notes?: unknown;
  website_title?: unknown;
  website_description?: unknown;
  is_archived?: unknown;
  unread?: unknown;
  tag_names?: unknown;
  date_added?: unknown;
  date_modified?: unknown;
}

export const fromLinkding = (bookmark: LinkdingBookmark): ForeignBookmark => ({
  url: bookmark.url,
  title: bookmark.title || bookmark.website_title,
  comment: [bookmark.description || bookmark.website_description, bookmark.notes],
  tags: [
    ...(Array.isArray(bookmark.tag_names)
      ? bookmark.tag_names.filter((name) => typeof name === 'string')
      : []),
    ...(bookmark.unread === true ? ['toread'] : []),
    ...(bookmark.is_archived === true ? ['archived'] : []),
  ],
  createdAt: bookmark.date_added,
  updatedAt: bookmark.date_modified,
});
