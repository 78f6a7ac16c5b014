import { z } from 'zod';
import { BOUNDS, searchPhrases, site, tagNames, tagPaths, text, timestamp } from './fields.ts';
import { cleanTagName, foldText } from './text.ts';
import { dropNulls } from './validation.ts';

const time = timestamp.meta({ format: 'date-time', examples: ['2026-01-31T12:00:00.000Z'] });

/** A tag name in its normalized form. An empty name is no filter. */
const tagKey = z
  .string()
  .transform(cleanTagName)
  .pipe(text({ max: BOUNDS.tagName }))
  .meta({ maxLength: BOUNDS.tagName, examples: ['reading'] })
  .transform((name) => (name === '' ? undefined : foldText(name)))
  .optional();

/** Tag names in their normalized form. */
const tagKeys = (examples: string[]) =>
  tagNames
    .meta({ ...tagNames.meta(), examples: [examples] })
    .transform(({ keys }) => keys)
    .optional();

const alternative = z
  .object({ phrases: searchPhrases.default([]), tags: tagKeys(['reading']).default([]) })
  .refine(({ phrases, tags }) => phrases.length + tags.length > 0, 'expected phrases or tags');

/**
 * Alternatives, of which a bookmark must match one. It matches an alternative if its text contains all phrases and if it
 * has all tags. As in a body, `null` in an optional field means absent.
 */
const alternatives = z
  .array(
    z.preprocess((given: z.input<typeof alternative>) => dropNulls(given), alternative),
    'expected an array',
  )
  .max(BOUNDS.alternatives, `at most ${BOUNDS.alternatives} alternatives`)
  .meta({ maxItems: BOUNDS.alternatives, examples: [[{ phrases: ['sqlite'] }, { tags: ['reading'] }]] });

/**
 * The filters of a search. A bookmark must meet all filters that are present. The SQL function `search_bookmarks` gets
 * the output of this schema, with phrases as patterns. A new filter needs a line here, and a column and a condition in
 * `find_matches`.
 */
export const searchFilter = z.object({
  without_phrases: searchPhrases.optional(),
  any: alternatives.optional(),
  tag: tagKey,
  tags: tagKeys(['reading']),
  tag_under: tagPaths.optional(),
  without_tags: tagKeys(['done']),
  untagged: z.boolean().default(false),
  created_after: time.optional(),
  created_before: time.optional(),
  updated_after: time.optional(),
  site: site.optional(),
});

export type SearchFilter = Partial<z.output<typeof searchFilter>>;
