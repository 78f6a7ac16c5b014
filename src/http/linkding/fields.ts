import { z } from 'zod';
import { invalid } from '../../domain/errors.ts';
import type { Bookmark } from '../../domain/resources.ts';
import { parseBody } from '../../domain/validation.ts';

/**
 * Converts bookmarks between linkding's form and this service's form, without loss. linkding's flags become tags, and
 * its notes become a part of the comment.
 */

/** The names of the tags that stand for linkding's flags. Imports of linkding's files use the same names. */
const FLAG_TAGS = { is_archived: 'archived', unread: 'toread', shared: 'shared' } as const;

export const ARCHIVED = FLAG_TAGS.is_archived;
export const UNREAD = FLAG_TAGS.unread;

type Flag = keyof typeof FLAG_TAGS;
const FLAGS = Object.keys(FLAG_TAGS) as Flag[];

/** Separates the description from the notes in a comment. */
const NOTES_LINE = '--- notes ---';
/** Matches a comment with notes. The groups are `description` (undefined if there is none) and `notes`. */
const COMMENT_WITH_NOTES = new RegExp(
  `^(?:${NOTES_LINE}\\n|(?<description>[\\s\\S]*?)\\n\\n${NOTES_LINE}\\n)(?<notes>[\\s\\S]*)$`,
);

/** The bookmark fields that linkding's clients may send. Unknown fields are ignored, as in linkding. */
const sentFields = z.object({
  url: z.string().exactOptional(),
  title: z.string().exactOptional(),
  description: z.string().exactOptional(),
  notes: z.string().exactOptional(),
  is_archived: z.boolean().exactOptional(),
  unread: z.boolean().exactOptional(),
  shared: z.boolean().exactOptional(),
  tag_names: z.array(z.string()).exactOptional(),
});

export type LinkdingFields = Required<z.output<typeof sentFields>>;

/** Returns the known fields of a body. Throws `VALIDATION_ERROR` if one has a wrong type. */
export const readFields = (body: unknown): Partial<LinkdingFields> => parseBody(sentFields, body);

/** A bookmark as linkding returns it. */
interface LinkdingBookmark extends LinkdingFields {
  id: number;
  web_archive_snapshot_url: string;
  favicon_url: null;
  preview_image_url: null;
  date_added: string;
  date_modified: string;
  website_title: null;
  website_description: null;
}

/** The values of the fields that a POST or PUT of a bookmark omits. */
export const DEFAULTS: Omit<LinkdingFields, 'url'> = {
  title: '',
  description: '',
  notes: '',
  is_archived: false,
  unread: false,
  shared: false,
  tag_names: [],
};

const isTagOf = (name: string, flag: Flag): boolean => name.toLowerCase() === FLAG_TAGS[flag];
const isFlag = (name: string): boolean => FLAGS.some((flag) => isTagOf(name, flag));

/** Converts a bookmark to the form that linkding's clients expect. */
export function toLinkding(bookmark: Bookmark): LinkdingBookmark {
  const { id, url, title, comment, tags, created_at, updated_at } = bookmark;
  const parts = COMMENT_WITH_NOTES.exec(comment)?.groups;
  const { description = '', notes = '' } = parts ?? { description: comment, notes: '' };
  const names = tags.map(({ name }) => name);
  const hasFlag = (flag: Flag) => names.some((name) => isTagOf(name, flag));
  return {
    id,
    url,
    title,
    description,
    notes,
    web_archive_snapshot_url: '',
    favicon_url: null,
    preview_image_url: null,
    is_archived: hasFlag('is_archived'),
    unread: hasFlag('unread'),
    shared: hasFlag('shared'),
    tag_names: names.filter((name) => !isFlag(name)),
    date_added: created_at,
    date_modified: updated_at,
    website_title: null,
    website_description: null,
  };
}

/**
 * Converts linkding's fields to those of this service. Throws `VALIDATION_ERROR` if the description contains the line
 * that separates the notes from it.
 */
export function fromLinkding(fields: LinkdingFields): {
  url: string;
  title: string;
  comment: string;
  tags: string[];
} {
  const { url, title, description, tag_names: names } = fields;
  const notes = fields.notes.trim();
  if (description.split('\n').includes(NOTES_LINE))
    throw invalid(`description: may not contain the line ${NOTES_LINE}`);
  const withNotes =
    description === '' ? `${NOTES_LINE}\n${notes}` : `${description}\n\n${NOTES_LINE}\n${notes}`;
  const flagTags = FLAGS.filter((flag) => fields[flag]).map((flag) => FLAG_TAGS[flag]);
  return { url, title, comment: notes === '' ? description : withNotes, tags: [...names, ...flagTags] };
}
