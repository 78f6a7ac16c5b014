import { z } from 'zod';
import { id } from '../domain/fields.ts';

/** Schemas of what is answered, for the reference; the answers themselves are built by Postgres. */

export const timestampText = z.iso
  .datetime({ precision: 3 })
  .meta({ examples: ['2026-01-31T12:00:00.000Z'] });

/** A number of things. */
export const count = z
  .int()
  .min(0)
  .meta({ examples: [1] });

export const tagName = z.string().meta({ examples: ['reading'] });

export const bookmarkTag = z.object({ id, name: tagName });

export const bookmark = z
  .object({
    id,
    url: z.string().meta({ format: 'uri', examples: ['https://example.org/'] }),
    title: z.string().meta({ examples: ['An example'] }),
    comment: z.string().meta({ examples: ['to read'] }),
    tags: z.array(bookmarkTag),
    created_at: timestampText,
    updated_at: timestampText,
  })
  .meta({ id: 'Bookmark' });

export const deleted = z.object({ deleted: z.literal(true) });
