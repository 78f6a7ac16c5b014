import { invalid } from '../../domain/errors.ts';
import type { Bookmark } from '../../domain/resources.ts';

/**
 * Translates linkding's bookmarks into ours without loss: flags become tags, and notes become part of the comment.
 */

/** The tag of each flag. Imports of linkding's files use the same names. */
const FLAG_TAGS = { is_archived: 'archived', unread: 'toread', shared: 'shared' } as const;

export const ARCHIVED = FLAG_TAGS.is_archived;
export const UNREAD = FLAG_TAGS.unread;

type Flag = keyof typeof FLAG_TAGS;
const FLAGS = Object.keys(FLAG_TAGS) as Flag[];

/** Separates the description from the notes in a comment. */
const NOTES_LINE = '--- notes ---';
const COMMENT = new RegExp(`^(?:${NOTES_LINE}\\n|([\\s\\S]*?)\\n\\n${NOTES_LINE}\\n)([\\s\\S]*)$`);

/** The fields of a bookmark that linkding's clients write. */
export interface LinkdingFields {
  url: string;
  title: string;
  description: string;
  notes: string;
  is_archived: boolean;
  unread: boolean;
  shared: boolean;
  tag_names: string[];
}

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

export const NEW: Omit<LinkdingFields, 'url'> = {
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

/** A bookmark as linkding's clients see it. */
export function toLinkding(bookmark: Bookmark): LinkdingBookmark {
  const { id, url, title, comment, tags, created_at, updated_at } = bookmark;
  const [, description = '', notes = ''] = COMMENT.exec(comment) ?? [undefined, comment];
  const names = tags.map(({ name }) => name);
  const has = (flag: Flag) => names.some((name) => isTagOf(name, flag));
  return {
    id,
    url,
    title,
    description,
    notes,
    web_archive_snapshot_url: '',
    favicon_url: null,
    preview_image_url: null,
    is_archived: has('is_archived'),
    unread: has('unread'),
    shared: has('shared'),
    tag_names: names.filter((name) => !isFlag(name)),
    date_added: created_at,
    date_modified: updated_at,
    website_title: null,
    website_description: null,
  };
}

/**
 * Translates linkding's fields into ours. Throws `VALIDATION_ERROR` if the description contains the line that
 * separates the notes.
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
  const flags = FLAGS.filter((flag) => fields[flag]).map((flag) => FLAG_TAGS[flag]);
  return { url, title, comment: notes === '' ? description : withNotes, tags: [...names, ...flags] };
}

const READERS: { [Name in keyof LinkdingFields]: (value: unknown) => boolean } = {
  url: isText,
  title: isText,
  description: isText,
  notes: isText,
  is_archived: isBoolean,
  unread: isBoolean,
  shared: isBoolean,
  tag_names: (value) => Array.isArray(value) && value.every(isText),
};

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

/**
 * The known fields of a body. Throws `VALIDATION_ERROR` for a wrong type. Unknown fields are ignored, as in linkding.
 */
export function readFields(body: unknown): Partial<LinkdingFields> {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalid('body: must be an object');
  const given: Record<string, unknown> = {};
  for (const [name, isValid] of Object.entries(READERS)) {
    const value = (body as Record<string, unknown>)[name];
    if (value === undefined) continue;
    if (!isValid(value)) throw invalid(`${name}: has the wrong type`);
    given[name] = value;
  }
  return given;
}
