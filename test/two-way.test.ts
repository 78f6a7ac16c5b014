import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Bookmark, Report } from '../src/client/index.ts';
import type { BookmarkTag } from '../src/domain/resources.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { type TestUser, useService } from './support/service.ts';
import { Device, seededRandom, Task, type Transition } from './support/two-way.ts';

/**
 * Five devices write to the same collection over two replicas, offline and online, and may die at any step. `TEST_SEED`
 * repeats a run, and `TEST_ROUNDS` makes it longer.
 */

const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const ROUNDS = Number(process.env.TEST_ROUNDS ?? 25);
const LIMIT = 20;

const one = useService({ freeBookmarkLimit: LIMIT });
const two = useService({ freeBookmarkLimit: LIMIT }, { beside: one });

let folder: string;
beforeAll(() => {
  folder = makeFolder('two-way');
});
afterAll(() => removeFolder(folder));

const random = seededRandom(seed);
const below = (count: number): number => Math.floor(random() * count);
const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
const TAGS = ['red', 'green', 'blue', 'black'];
let unique = 0;
const someTags = () => TAGS.filter(() => random() < 0.4);

const toMap = (bookmarks: Bookmark[]) => new Map(bookmarks.map((bookmark) => [bookmark.id, bookmark]));

const readAll = async (user: TestUser): Promise<Bookmark[]> =>
  (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks;

/** Makes a random local write, as a user would. */
async function writeLocally(device: Device): Promise<void> {
  const shown = await device.collection.list();
  const value = `${device.options.name}-${++unique}`;
  const choice = random();
  await device.write(async (collection) => {
    if (shown.length === 0 || choice < 0.25)
      return collection.add({ url: `https://example.org/${value}`, title: value, tags: someTags() });
    const { id, url } = pick(shown);
    if (choice < 0.35) {
      const on_duplicate = pick(['add', 'return', 'error'] as const);
      return collection.add({ url, title: value, tags: someTags(), on_duplicate });
    }
    if (choice < 0.45) return collection.delete(id);
    const edit = { ...(choice < 0.8 && { title: value }), ...(choice > 0.65 && { comment: value }) };
    return collection.edit(id, { ...edit, ...(random() < 0.4 && { tags: someTags() }) });
  });
}

/** Makes a random write, like a program that does not use `client.collection`. */
async function writeElsewhere(user: TestUser): Promise<void> {
  const value = `i-${++unique}`;
  const tags: { id: number; name: string }[] = (await user.post('/tags/list')).body.tags;
  const shown = await readAll(user);
  const choice = random();
  const entry = { url: `https://example.org/${value}`, title: value, tags: someTags() };
  if (choice < 0.1) await user.post('/import', { bookmarks: [entry, { ...entry, url: `${entry.url}/2` }] });
  else if (choice < 0.15)
    await user.post('/import', {
      mode: 'replace',
      bookmarks: shown.slice(0, 3).map(({ url, title }) => ({ url, title })),
    });
  else if (choice < 0.3 && tags.length > 0)
    await user.post('/tags/update', { id: pick(tags).id, name: value });
  else if (choice < 0.4 && tags.length > 1)
    await user.post('/tags/merge', { id: tags[0]!.id, into_id: tags[1]!.id });
  else if (choice < 0.45 && tags.length > 0) await user.post('/tags/delete', { id: pick(tags).id });
  else if (choice < 0.55 && shown.length > 0)
    await user.post('/bookmarks/delete', { id: pick(shown).id, trash: random() < 0.5 });
  else if (choice < 0.65) {
    const { bookmarks } = (await user.post('/trash/list')).body;
    if (bookmarks.length > 0) await user.post('/trash/restore', { ids: [pick<Bookmark>(bookmarks).id] });
  } else if (shown.length > 0)
    await user.post('/bookmarks/edit', { id: pick(shown).id, title: value, comment: value });
}

/** Runs tasks in a random order, one step of one task at a time. */
async function interleave(tasks: Task[]): Promise<void> {
  for (let left = tasks; left.length > 0; left = left.filter(({ isDone }) => !isDone))
    await pick(left).step();
}

const TEXT_FIELDS = ['url', 'title', 'comment'] as const;

const namesOf = (tags: readonly BookmarkTag[]): string[] => tags.map(({ name }) => name).sort();

/**
 * Whether a device made several adds of one url in the same millisecond. A client cannot tell such adds apart, so they
 * may become one bookmark without a report.
 */
const hasTwins = (device: Device, { url, created_at }: Pick<Bookmark, 'url' | 'created_at'>): boolean =>
  device.wrote.filter(
    ({ intent }) =>
      intent.kind === 'add' && intent.bookmark.url === url && intent.bookmark.created_at === created_at,
  ).length > 1;

/**
 * Fails if a device's write made a change that its user did not ask for, or replaced a value that the user had not
 * seen.
 */
function checkTransition({ device, seq, row, before, after }: Transition, reports: Report[]): void {
  const { intent } = device.wrote.find((write) => write.seq === seq)!;
  const where = `${device.options.name} ${seq}: ${JSON.stringify({ intent, before, after })}`;
  if (before === undefined) {
    if (intent.kind !== 'add') throw new Error(`no add: ${where}`);
    const { tags, ...fields } = intent.bookmark;
    expect(after, where).toMatchObject(fields);
    expect(namesOf(after!.tags), where).toEqual([...tags].sort());
    // An earlier request with the same key may have had no effect, for example because the token was revoked.
    if (intent.onDuplicate !== 'add') expect(device.wasSaved.get(seq), where).toContain(false);
    return;
  }
  if (after === undefined) {
    if (intent.kind !== 'delete') throw new Error(`no deletion: ${where}`);
    if (hasTwins(device, intent.bookmark)) return;
    for (const name of TEXT_FIELDS) expect(intent.bookmark[name], where).toBe(before[name]);
    return;
  }
  if (intent.kind !== 'edit') throw new Error(`no edit: ${where}`);
  // If somebody has renamed or removed a tag of the bookmark, the device cannot know it yet.
  if (JSON.stringify(row!.tags) === JSON.stringify(before.tags)) {
    const isRemoved = ({ id, name }: BookmarkTag) =>
      intent.removeTags.some((removed) => (removed.id === 0 ? removed.name === name : removed.id === id));
    const kept = before.tags.filter((tag) => !isRemoved(tag)).map(({ name }) => name);
    expect(namesOf(after.tags), where).toEqual([...new Set([...kept, ...intent.addTags])].sort());
  }
  const conflicts = reports.filter((report) => report.seq === seq && report.kind === 'conflict');
  for (const name of TEXT_FIELDS) {
    if (before[name] === after[name]) continue;
    const conflict = conflicts.find((report) => report.conflict!.field === name)?.conflict;
    if (conflict === undefined)
      expect(intent.fields[name], where).toEqual({ from: before[name], to: after[name] });
    else expect(conflict, where).toMatchObject({ theirs: before[name], kept: after[name] });
  }
}

/**
 * Fails if the service applied a write twice or out of order, or if an add or an edit was neither applied nor reported.
 */
function checkWrites(device: Device, transitions: Transition[], reports: Report[], finalIds: Set<number>) {
  const own = transitions.filter((transition) => transition.device === device);
  const applied = own.map(({ seq }) => seq);
  expect(new Set(applied).size, `${device.options.name}: once each`).toBe(applied.length);
  const idOf = ({ before, after }: Transition) => (before ?? after)!.id;
  for (const [id, ofOne] of Map.groupBy(own, idOf)) {
    const seqs = ofOne.map(({ seq }) => seq);
    expect(seqs, `${device.options.name} ${id}: in order`).toEqual(seqs.toSorted((a, b) => a - b));
  }
  for (const { seq, intent } of device.wrote) {
    const said = reports.filter((report) => report.seq === seq);
    const where = `${device.options.name} ${seq}: ${JSON.stringify({ intent, said })}`;
    const dropped = said.filter(({ kind }) => kind !== 'conflict').length;
    expect(dropped, where).toBeLessThanOrEqual(1);
    // A deleted bookmark never comes back under its id.
    for (const { kind, id } of said)
      if (kind === 'gone') expect([id > 0, finalIds.has(id)], where).toEqual([true, false]);
    if (intent.kind === 'add' && !hasTwins(device, intent.bookmark))
      expect(dropped + (applied.includes(seq) ? 1 : 0), where).toBe(1);
    for (const report of said) {
      // If an add is refused, the later writes to its bookmark are refused with it.
      const isDuplicate =
        intent.kind === 'add' && report.kind === 'refused' && report.code === 'VALIDATION_ERROR';
      if (report.kind !== 'duplicate' && !isDuplicate) continue;
      expect(intent, where).toMatchObject({ kind: 'add', onDuplicate: isDuplicate ? 'error' : 'return' });
      expect(device.wasSaved.get(seq), where).toContain(true);
    }
    if (intent.kind !== 'edit' || dropped > 0) continue;
    const fields = Object.keys(intent.fields);
    // If a conflict kept the service's value of a field, the device sends nothing for this field.
    const keptTheirs = said
      .map((report) => report.conflict!)
      .filter(({ kept, theirs }) => kept === theirs).length;
    if (fields.length > keptTheirs) expect(applied, where).toContain(seq);
  }
}

test('five devices that may die at any step lose no write, apply none twice, and overwrite nothing that they have not seen', async () => {
  console.log(`two-way: TEST_SEED=${seed}`);
  const user = await one.user();
  const issueToken = async () => (await one.session(user.email)).token;
  const tokens = await Promise.all(Array.from({ length: 5 }, issueToken));
  const transitions: Transition[] = [];
  const devices = (['theirs', 'mine', 'theirs', 'mine', 'callback'] as const).map(
    (policy, at) =>
      new Device({
        name: `d${at}`,
        origins: [one.origin, two.origin],
        token: tokens[at]!,
        issueToken,
        policy: policy === 'callback' ? ({ mine, theirs }) => `${mine}+${theirs}`.slice(0, 200) : policy,
        file: at % 2 === 0 ? undefined : join(folder, `${randomUUID()}.sqlite`),
        random,
        readAll: async () => toMap(await readAll(user)),
        onTransition: (transition) => transitions.push(transition),
      }),
  );
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const device of devices) {
      device.faults = 0.04;
      for (let count = below(4); count > 0; count -= 1) await writeLocally(device);
    }
    const online = devices.filter(() => random() < 0.6);
    await interleave([
      ...online.map(
        (device) =>
          new Task(async (pause) => {
            // A fault ends a sync, so the device tries up to four times.
            for (let left = 4; left > 0 && !(await device.sync(pause)); left -= 1);
          }),
      ),
      new Task(async (pause) => {
        for (let count = below(6); count > 0; count -= 1) {
          await writeElsewhere(user);
          await pause();
        }
      }),
    ]);
  }
  for (const device of devices) {
    device.faults = 0;
    expect(await device.sync(async () => {})).toBe(true);
  }
  const final = await readAll(user);
  for (const device of devices) {
    await device.sync(async () => {});
    expect(await device.collection.pending()).toEqual([]);
    expect(await device.collection.list()).toEqual(final);
  }
  const ids = new Set(final.map(({ id }) => id));
  const kinds = new Map<string, number>();
  for (const device of devices) {
    const reports = await device.reports();
    for (const { kind } of reports) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    for (const transition of transitions)
      if (transition.device === device) checkTransition(transition, reports);
    checkWrites(device, transitions, reports, ids);
    device.close();
  }
  // The run must have tested enough writes. A short run may not produce every kind of report.
  expect(transitions.length).toBeGreaterThan(ROUNDS);
  if (ROUNDS >= 100) {
    expect(devices.reduce((sum, { revocations }) => sum + revocations, 0)).toBeGreaterThan(0);
    expect([...kinds.keys()].sort()).toEqual(['conflict', 'duplicate', 'gone', 'kept', 'refused']);
  }
  console.log(`two-way: ${transitions.length} writes, reports ${JSON.stringify(Object.fromEntries(kinds))}`);
}, 600_000);
