import type { AddCall, Asked, DeleteCall, Evidence, ImportCall } from '../journal.ts';

/** A bookmark that was in a response or is in the database. */
export interface Birth {
  id: number;
  user: number;
  url: string;
  /** The call that requested the bookmark. Undefined if no call did. */
  call: AddCall | ImportCall | undefined;
  /** The earliest time at which the bookmark is known to have existed. */
  knownByMs: number;
  /** From this time on, somebody may have removed the bookmark. Infinite if nobody tried. */
  goneFromMs: number;
}

/** The bookmarks and the calls that requested them, derived from the journal and the final database. */
export interface Story {
  evidence: Evidence;
  births: Map<number, Birth>;
  birthsByUser: Map<number, Birth[]>;
  idsByUrl: Map<string, Set<number>>;
  callByUrl: Map<string, { call: AddCall | ImportCall; asked: Asked }>;
  /** By url: the number of imports with `merge` that contained the url after an earlier call had sent it. */
  repeats: Map<string, number>;
  /** By user: the imports with `replace` that may have happened. */
  replaces: Map<number, ImportCall[]>;
  /** One sentence for each time that an id appeared with a different url or user than at first. */
  contradictions: string[];
}

/** Returns the latest time at which a call can have taken effect. Infinite unless its outcome is `done`. */
export const effectEndMs = ({ outcome, endMs }: { outcome: string; endMs: number }): number =>
  outcome === 'done' ? endMs : Number.POSITIVE_INFINITY;

/** Derives the story from the journal and the final database. */
export function tellStory(evidence: Evidence): Story {
  const story: Story = {
    evidence,
    births: new Map(),
    birthsByUser: new Map(),
    idsByUrl: new Map(),
    callByUrl: new Map(),
    repeats: new Map(),
    replaces: new Map(),
    contradictions: [],
  };
  indexCalls(story);
  collectBirths(story);
  const deletes = earliestDeletes(story);
  for (const birth of story.births.values()) {
    birth.goneFromMs = Math.min(deletes.get(birth.id) ?? Number.POSITIVE_INFINITY, wipedFromMs(story, birth));
    append(story.birthsByUser, birth.user, birth);
  }
  return story;
}

function indexCalls(story: Story): void {
  for (const call of story.evidence.journal.calls) {
    if (call.kind === 'add') story.callByUrl.set(call.url, { call, asked: call });
    if (call.kind !== 'import') continue;
    for (const asked of call.entries) story.callByUrl.set(asked.url, { call, asked });
    for (const url of call.repeated) story.repeats.set(url, (story.repeats.get(url) ?? 0) + 1);
    if (call.mode === 'replace' && call.outcome !== 'refused') append(story.replaces, call.user, call);
  }
}

function collectBirths(story: Story): void {
  const { journal, rest } = story.evidence;
  for (const call of journal.calls) {
    if (call.kind === 'add' && call.id !== undefined) note(story, call.id, call.user, call.url, call.endMs);
  }
  for (const { user, receipts } of journal.followers) {
    for (const { id, url, atMs } of receipts) note(story, id, user, url, atMs);
  }
  for (const { user, ids, urls, endMs } of journal.looks) {
    for (const [n, id] of ids.entries()) note(story, id, user, urls[n]!, endMs);
  }
  for (const { id, user, url } of rest.rows) note(story, id, user, url, Number.POSITIVE_INFINITY);
}

function note(story: Story, id: number, user: number, url: string, knownByMs: number): void {
  const known = story.births.get(id);
  if (known === undefined) {
    const call = story.callByUrl.get(url)?.call;
    story.births.set(id, { id, user, url, call, knownByMs, goneFromMs: Number.POSITIVE_INFINITY });
    const ids = story.idsByUrl.get(url) ?? new Set();
    story.idsByUrl.set(url, ids.add(id));
    return;
  }
  known.knownByMs = Math.min(known.knownByMs, knownByMs);
  if (known.url !== url || known.user !== user) {
    story.contradictions.push(`bookmark ${id} was shown as ${known.url} and as ${url}`);
  }
}

function earliestDeletes({ evidence }: Story): Map<number, number> {
  const earliest = new Map<number, number>();
  const isDelete = (call: { kind: string }): call is DeleteCall => call.kind === 'delete';
  for (const { ids, sentMs, outcome } of evidence.journal.calls.filter(isDelete)) {
    if (outcome === 'refused') continue;
    for (const id of ids) earliest.set(id, Math.min(earliest.get(id) ?? Number.POSITIVE_INFINITY, sentMs));
  }
  return earliest;
}

/** Returns the earliest time at which a `replace` that may have removed the bookmark was sent. Infinite if none was. */
export function wipedFromMs(story: Story, { user, url, call }: Pick<Birth, 'user' | 'url' | 'call'>): number {
  // If an import with `merge` repeated this url, the import may have created the bookmark again at any time. In that
  // case, any `replace` may have removed the bookmark, however early it was sent.
  const bornFromMs = story.repeats.has(url) ? 0 : (call?.sentMs ?? 0);
  const later = (story.replaces.get(user) ?? []).filter(
    (replace) => replace !== call && effectEndMs(replace) >= bornFromMs,
  );
  return Math.min(Number.POSITIVE_INFINITY, ...later.map(({ sentMs }) => sentMs));
}

/** Appends to a list in a map. */
export function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
