import { z } from 'zod';
import { invalid } from '../../domain/errors.ts';
import type { Bookmark } from '../../domain/resources.ts';
import { parseBody } from '../../domain/validation.ts';
import type { TagNames } from './tag-names.ts';
import { linkdingTime, writeTime } from './times.ts';

/**
 * Converts bookmarks between linkding's form and this service's form, without loss. linkding's flags become tags, and
 * its notes become a part of the comment.
 */

/** The names of the tags that stand for linkding's flags. Imports of linkding's files use the same names. */
const FLAG_TAGS = { is_archived: 'archived', unread: 'toread', shared: 'shared' } as const;

export const ARCHIVED = FLAG_TAGS.is_archived;
export const UNREAD = FLAG_TAGS.unread;
export const SHARED = FLAG_TAGS.shared;

type Flag = keyof typeof FLAG_TAGS;
const FLAGS = Object.keys(FLAG_TAGS) as Flag[];

/** Separates the description from the notes in a comment. */
const NOTES_LINE = '--- notes ---';
/** Matches a comment with notes. The groups are `description` (undefined if there is none) and `notes`. */
const COMMENT_WITH_NOTES = new RegExp(
  `^(?:${NOTES_LINE}\\n|(?<description>[\\s\\S]*?)\\n\\n${NOTES_LINE}\\n)(?<notes>[\\s\\S]*)$`,
);

/** True or false. Forms, and some clients also in JSON, send it as a word. */
const flag = z.union([z.boolean(), z.stringbool()], 'expected true or false').exactOptional();

/** The bookmark fields that linkding's clients may send. Unknown fields are ignored, as in linkding. */
const sentFields = z.object({
  url: z.string().exactOptional(),
  title: z.string().exactOptional(),
  description: z.string().exactOptional(),
  notes: z.string().exactOptional(),
  is_archived: flag,
  unread: flag,
  shared: flag,
  tag_names: z.array(z.string()).exactOptional(),
});
const newFields = sentFields.extend({ url: z.string(), date_added: linkdingTime.exactOptional() });
const replacedFields = sentFields.required({ url: true });

type LinkdingFields = Required<z.output<typeof sentFields>>;
/** The fields that a request names. */
export type SentFields = z.output<typeof sentFields>;

/** Each returns the known fields of a body. Throws `VALIDATION_ERROR` if one has a wrong type or is missing. */
export const readNewFields = (body: unknown) => parseBody(newFields, body);
export const readReplacedFields = (body: unknown): SentFields => parseBody(replacedFields, body);
export const readChangedFields = (body: unknown): SentFields => parseBody(sentFields, body);

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

/** The values of the fields that a POST of a bookmark omits. */
export const DEFAULTS: Omit<LinkdingFields, 'url'> = {
  title: '',
  description: '',
  notes: '',
  is_archived: false,
  unread: false,
  shared: false,
  tag_names: [],
};

const isTagOf = (name: string, flagName: Flag): boolean => name.toLowerCase() === FLAG_TAGS[flagName];
const isFlag = (name: string): boolean => FLAGS.some((each) => isTagOf(name, each));

/** Converts a bookmark to the form that linkding's clients expect. */
export function toLinkding(bookmark: Bookmark, { write }: Pick<TagNames, 'write'>): LinkdingBookmark {
  const { id, url, title, comment, created_at, updated_at } = bookmark;
  return {
    id,
    url,
    title,
    ...splitComment(comment),
    web_archive_snapshot_url: '',
    favicon_url: null,
    preview_image_url: null,
    ...flagsOf(bookmark),
    tag_names: ownNames(bookmark).map(write),
    date_added: writeTime(created_at),
    date_modified: writeTime(updated_at),
    website_title: null,
    website_description: null,
  };
}

const flagsOf = ({ tags }: Bookmark): Record<Flag, boolean> => {
  const hasFlag = (each: Flag) => tags.some(({ name }) => isTagOf(name, each));
  return { is_archived: hasFlag('is_archived'), unread: hasFlag('unread'), shared: hasFlag('shared') };
};

/** Returns the names of the tags that stand for no flag. */
const ownNames = ({ tags }: Bookmark): string[] =>
  tags.map(({ name }) => name).filter((name) => !isFlag(name));

const withFlagTags = (names: readonly string[], flags: Record<Flag, boolean>): string[] => [
  ...names,
  ...FLAGS.filter((each) => flags[each]).map((each) => FLAG_TAGS[each]),
];

interface Texts {
  description: string;
  notes: string;
}

function splitComment(comment: string): Texts {
  const parts = COMMENT_WITH_NOTES.exec(comment)?.groups;
  if (parts === undefined) return { description: comment, notes: '' };
  const { description = '', notes = '' } = parts;
  return { description, notes };
}

/** Throws `VALIDATION_ERROR` if the description contains the line that separates the notes from it. */
function joinComment({ description, notes: untrimmed }: Texts): string {
  const notes = untrimmed.trim();
  if (description.split('\n').includes(NOTES_LINE))
    throw invalid(`description: may not contain the line ${NOTES_LINE}`);
  if (notes === '') return description;
  return description === '' ? `${NOTES_LINE}\n${notes}` : `${description}\n\n${NOTES_LINE}\n${notes}`;
}

/** Converts the fields of a new bookmark. `names` are the names of its tags. Throws like `joinComment`. */
export const toNewBookmark = (fields: LinkdingFields, names: readonly string[]) => ({
  url: fields.url,
  title: fields.title,
  comment: joinComment(fields),
  tags: withFlagTags(names, fields),
});

/**
 * Converts the fields that a request names to the change of a bookmark. Fields that are not named, or stay equal, are
 * absent from the result. So the edit keeps what other clients change in them. `names` are the names of the tags that
 * `tag_names` means. Throws like `joinComment`.
 */
export function toChange(current: Bookmark, fields: SentFields, names: readonly string[] | undefined) {
  const { url, title } = fields;
  const texts = splitComment(current.comment);
  const { description = texts.description, notes = texts.notes } = fields;
  const hasSameTexts = description === texts.description && notes === texts.notes;
  const flags = flagsOf(current);
  const changesFlag = FLAGS.some((each) => fields[each] !== undefined && fields[each] !== flags[each]);
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    // Another program may have written the comment, with the line `NOTES_LINE` in another place. So it is not built
    // again from the same texts.
    ...(!hasSameTexts && { comment: joinComment({ description, notes }) }),
    ...((names !== undefined || changesFlag) && {
      tags: withFlagTags(names ?? ownNames(current), { ...flags, ...fields }),
    }),
  };
}
