import { namesGivenTo } from '../domain/bookmark-fields.ts';
import type { Bookmark, BookmarkEdit, BookmarkTag, Tag } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { sortTags } from './memory-store.ts';
import type {
  Attempt,
  BookmarkState,
  FieldConflict,
  Intent,
  MergedField,
  MergedValue,
  PendingWrite,
} from './outbox.ts';

/**
 * How to resolve a conflict: a field was changed both in the copy and on the service. `theirs` keeps the service's
 * value, and `mine` keeps the copy's value. If the policy is a function, it returns the value to keep.
 */
export type ConflictPolicy = 'theirs' | 'mine' | ((conflict: Omit<FieldConflict, 'kept'>) => MergedValue);

export const MERGED_FIELDS = namesGivenTo('edit').filter((name): name is MergedField => name !== 'tags');

/** Stands for the id of a tag whose real id this copy does not know yet. */
const NEW_TAG = 0;

/** Returns a bookmark as the user sees it: as the service last returned it, with the pending writes applied. */
export function showState({ id, row, writes }: BookmarkState): Bookmark | undefined {
  let shown = row;
  for (const { intent } of writes) shown = applyIntent(id, shown, intent);
  return shown;
}

function applyIntent(id: number, shown: Bookmark | undefined, intent: Intent): Bookmark | undefined {
  if (intent.kind === 'delete') return undefined;
  if (intent.kind === 'add') {
    const { tags, ...fields } = intent.bookmark;
    return { id, ...fields, tags: mergeTags([], tags, []), updated_at: fields.created_at };
  }
  if (shown === undefined) return undefined;
  const edited = { ...shown, tags: mergeTags(shown.tags, intent.addTags, intent.removeTags) };
  for (const name of MERGED_FIELDS)
    Object.assign(edited, { [name]: intent.fields[name]?.to ?? edited[name] });
  return edited;
}

/** Returns `tags` without the removed tags and with the added ones. Names are compared ignoring case. */
export function mergeTags(
  tags: readonly BookmarkTag[],
  added: readonly string[],
  removed: readonly BookmarkTag[],
): BookmarkTag[] {
  const removedIds = new Set(removed.filter(({ id }) => id !== NEW_TAG).map(({ id }) => id));
  const removedNames = new Set(removed.filter(({ id }) => id === NEW_TAG).map(({ name }) => foldText(name)));
  const kept = tags.filter(({ id, name }) => !removedIds.has(id) && !removedNames.has(foldText(name)));
  const byName = new Map(kept.map((tag) => [foldText(tag.name), tag]));
  for (const name of added) {
    if (!byName.has(foldText(name))) byName.set(foldText(name), { id: NEW_TAG, name });
  }
  return sortTags([...byName.values()]);
}

/** Returns tags with the numbers of bookmarks that the user sees. `written` are the bookmarks with pending writes. */
export function countTags(tags: readonly Tag[], written: readonly BookmarkState[]): Tag[] {
  const counted = new Map(tags.map((tag) => [foldText(tag.name), { ...tag }]));
  const add = (shown: Bookmark | undefined, count: 1 | -1) => {
    for (const { name } of shown?.tags ?? []) {
      const tag = counted.get(foldText(name)) ?? { id: NEW_TAG, name, bookmark_count: 0 };
      tag.bookmark_count += count;
      counted.set(foldText(name), tag);
    }
  };
  for (const state of written) {
    add(state.row, -1);
    add(showState(state), 1);
  }
  return sortTags([...counted.values()]);
}

/**
 * What to do about a write:
 *
 * - `send`: send a request
 * - `done`: send nothing, because the service already has the wanted state
 * - `gone`, `kept`: drop the write, and report the plan's kind as the reason
 */
export type Plan =
  | ({ kind: 'send' } & Pick<Attempt, 'body' | 'version' | 'conflicts'>)
  | { kind: 'done'; conflicts: FieldConflict[] }
  | { kind: 'gone' }
  | { kind: 'kept' };

/**
 * Decides what to do about a write. `row` is the bookmark as the service last returned it. An edit is merged with
 * `row`, field by field. The policy resolves conflicts.
 */
export function planWrite(
  { intent, seen }: PendingWrite,
  row: Bookmark | undefined,
  policy: ConflictPolicy,
): Plan {
  if (intent.kind === 'add') {
    const body = { ...intent.bookmark, on_duplicate: intent.onDuplicate };
    return { kind: 'send', body, version: undefined, conflicts: [] };
  }
  if (row === undefined) return intent.kind === 'delete' ? { kind: 'done', conflicts: [] } : { kind: 'gone' };
  const target = { id: row.id, if_updated_at: row.updated_at };
  if (intent.kind === 'delete') {
    // If another client has edited the bookmark since the user saw it, the bookmark is kept.
    if (row.updated_at !== seen) return { kind: 'kept' };
    return { kind: 'send', body: { ...target, trash: true }, version: row.updated_at, conflicts: [] };
  }
  const { body, conflicts } = mergeFields(intent, row, policy);
  const tags = mergeTags(row.tags, intent.addTags, intent.removeTags).map(({ name }) => name);
  // Tag names contain no U+0000, so the joined texts are equal only if the lists are equal.
  if (tags.join('\0') !== row.tags.map(({ name }) => name).join('\0')) body.tags = tags;
  if (Object.keys(body).length === 0) return { kind: 'done', conflicts };
  return { kind: 'send', body: { ...target, ...body }, version: row.updated_at, conflicts };
}

/** Returns the fields to send, and the conflicts. A field that already has the wanted value is not sent. */
function mergeFields(
  { fields }: Extract<Intent, { kind: 'edit' }>,
  row: Bookmark,
  policy: ConflictPolicy,
): { body: Omit<BookmarkEdit, 'id'>; conflicts: FieldConflict[] } {
  const body: Omit<BookmarkEdit, 'id'> = {};
  const conflicts: FieldConflict[] = [];
  for (const field of MERGED_FIELDS) {
    const change = fields[field];
    const theirs = row[field];
    if (change === undefined || theirs === change.to) continue;
    let kept = change.to;
    if (theirs !== change.from) {
      const conflict = { field, base: change.from, mine: change.to, theirs };
      kept = resolveConflict(conflict, policy);
      conflicts.push({ ...conflict, kept });
    }
    if (kept !== theirs) Object.assign(body, { [field]: kept });
  }
  return { body, conflicts };
}

function resolveConflict(conflict: Omit<FieldConflict, 'kept'>, policy: ConflictPolicy): MergedValue {
  if (typeof policy === 'function') return policy(conflict);
  return conflict[policy];
}
