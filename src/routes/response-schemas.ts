import { z } from 'zod';
import { shownFields } from '../domain/bookmark-schemas.ts';
import { id } from '../domain/fields.ts';

/** Schemas of responses. They only describe the responses in the reference; SQL functions build most responses. */

export const timestampText = z.iso
  .datetime({ precision: 3 })
  .meta({ examples: ['2026-01-31T12:00:00.000Z'] });

export const count = z
  .int()
  .min(0)
  .meta({ examples: [1] });

export const tagName = z.string().meta({ examples: ['reading'] });

export const bookmarkTag = z.object({ id, name: tagName }).meta({ id: 'BookmarkTag' });

export const bookmark = z
  .object({
    id,
    ...shownFields({
      url: z.string(),
      text: z.string(),
      tags: z.array(bookmarkTag),
      time: timestampText,
      flag: z.boolean(),
    }),
  })
  .meta({ id: 'Bookmark' });

/** The response to the edit of one bookmark. */
export const editedBookmark = z
  .strictObject(bookmark.omit({ created_at: true }).shape)
  .meta({ id: 'EditedBookmark' });

/** Fields of the response to an operation on several bookmarks: how many it handled, and the ids of the others. */
export const severalDone = { count, missing: z.array(id), conflicts: z.array(id).optional() };

export const deleted = z.object({ deleted: z.literal(true) }).meta({ id: 'Deleted' });

/** The response to the deletion of one bookmark. */
export const deletedBookmark = z.strictObject(deleted.shape).meta({ id: 'DeletedBookmark' });
