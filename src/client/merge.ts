import type { Bookmark, BookmarkEdit, BookmarkTag } from '../domain/resources.ts';
import { foldText } from '../domain/text.ts';
import { sortTags } from './memory-store.ts';
import type { Attempt, BookmarkState, FieldConflict, Intent, PendingWrite, TextField } from './outbox.ts';

/** How to resolve a field that both sides changed. A function returns the value to keep. */
export type ConflictPolicy = 'theirs' | 'mine' | ((conflict: Omit<FieldConflict, 'kept'>) => string);

/** A missing field is a compile error. */
const IS_TEXT: Record<TextField, true> = { url: true, title: true, comment: true };

export const TEXT_FIELDS = Object.keys(IS_TEXT) as TextField[];

/** The id of a tag whose real id this copy does not know yet. */
const NEW_TAG = 0;

/** Returns a bookmark as the user sees it: the service's copy with the pending writes applied. */
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
  for (const name of TEXT_FIELDS) edited[name] = intent.fields[name]?.to ?? edited[name];
  return edited;
}

/** Adds tags to a set and removes tags from it. Names are compared ignoring case. */
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

/**
 * What to do for a write, given the service's current bookmark: send a request, nothing (`done`), or drop the write and
 * report why (`gone`, `kept`).
 */
export type Plan =
  | ({ kind: 'send' } & Pick<Attempt, 'body' | 'version' | 'conflicts'>)
  | { kind: 'done'; conflicts: FieldConflict[] }
  | { kind: 'gone' }
  | { kind: 'kept' };

/** Merges a write with the service's bookmark, field by field. The policy resolves conflicts. */
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
  const version = { id: row.id, if_updated_at: row.updated_at };
  if (intent.kind === 'delete') {
    if (row.updated_at !== seen) return { kind: 'kept' };
    return { kind: 'send', body: version, version: row.updated_at, conflicts: [] };
  }
  const { body, conflicts } = mergeFields(intent, row, policy);
  const tags = mergeTags(row.tags, intent.addTags, intent.removeTags).map(({ name }) => name);
  if (tags.join('\0') !== row.tags.map(({ name }) => name).join('\0')) body.tags = tags;
  if (Object.keys(body).length === 0) return { kind: 'done', conflicts };
  return { kind: 'send', body: { ...version, ...body }, version: row.updated_at, conflicts };
}

function mergeFields(
  { fields }: Extract<Intent, { kind: 'edit' }>,
  row: Bookmark,
  policy: ConflictPolicy,
): { body: Omit<BookmarkEdit, 'id'>; conflicts: FieldConflict[] } {
  const body: Omit<BookmarkEdit, 'id'> = {};
  const conflicts: FieldConflict[] = [];
  for (const field of TEXT_FIELDS) {
    const change = fields[field];
    const theirs = row[field];
    if (change === undefined || theirs === change.to) continue;
    let kept = change.to;
    if (theirs !== change.from) {
      const conflict = { field, base: change.from, mine: change.to, theirs };
      kept = resolveConflict(conflict, policy);
      conflicts.push({ ...conflict, kept });
    }
    if (kept !== theirs) body[field] = kept;
  }
  return { body, conflicts };
}

function resolveConflict(conflict: Omit<FieldConflict, 'kept'>, policy: ConflictPolicy): string {
  if (typeof policy === 'function') return policy(conflict);
  return conflict[policy];
}
