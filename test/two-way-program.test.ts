import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder, removeFolder } from './support/folders.ts';
import { useService } from './support/service.ts';

/** Tests the program in docs/sync-two-ways.md. */

const ROOT = join(import.meta.dirname, '..');
const exec = promisify(execFile);
const service = useService();

/** Prepares the documented program for a new user, with an empty folder. */
async function openFolder() {
  const folder = makeFolder('two-way-program');
  onTestFinished(() => removeFolder(folder));
  const documentation = readFileSync(join(ROOT, 'docs/sync-two-ways.md'), 'utf8');
  const program = /```ts\n([\s\S]*?)```/.exec(documentation)![1]!;
  // A store that counts its calls, so that a test sees how the work grows with the number of bookmarks.
  const store = join(folder, 'store.ts');
  writeFileSync(
    store,
    `import { SqliteStore as Store } from '${join(ROOT, 'src/client/sqlite-store.ts')}';
    const counts: Record<string, number> = {};
    export function SqliteStore(file: string): Store {
      return new Proxy(new Store(file), {
        get(store, name: string) {
          const value = Reflect.get(store, name, store);
          if (typeof value !== 'function') return value;
          counts[name] = (counts[name] ?? 0) + 1;
          return value.bind(store);
        },
      });
    }
    process.on('exit', () => console.error(JSON.stringify(counts)));`,
  );
  const script = join(folder, 'folder.ts');
  writeFileSync(
    script,
    program
      .replace("'bookmark-service/client'", `'${join(ROOT, 'src/client/index.ts')}'`)
      .replace("'bookmark-service/client/sqlite'", `'${store}'`),
  );
  const user = await service.user();
  const run = async (url = service.origin) => {
    const env = { ...process.env, URL: url, TOKEN: user.token };
    const { stdout, stderr, code } = await exec(process.execPath, [script, folder], { env }).then(
      (printed) => ({ ...printed, code: 0 }),
      (error) => error,
    );
    const lines = stderr.trim().split('\n');
    return { code, out: stdout, counts: JSON.parse(lines.at(-1)), err: lines.slice(0, -1).join('\n') };
  };
  return {
    folder,
    user,
    run,
    files: () => readdirSync(folder).filter((name) => name.endsWith('.json')),
    read: (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8')),
    write: (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value)),
    list: async () => (await user.post('/bookmarks/list', { limit: 500 })).body.bookmarks,
  };
}

test('the documented program keeps a folder and the service equal in both directions', async () => {
  const { folder, user, run, files, read, write, list } = await openFolder();
  const { id } = (await user.post('/bookmarks/add', { url: 'http://there/', tags: ['a'] })).body;
  write('mine.json', { url: 'http://here/', title: 'Here' });
  expect(await run()).toMatchObject({ code: 0, out: '', err: '' });
  expect(read(`${id}.json`)).toEqual({ url: 'http://there/', title: '', comment: '', tags: ['a'] });
  expect(await list()).toMatchObject([{ url: 'http://there/' }, { url: 'http://here/', title: 'Here' }]);

  // The service and the folder both change the bookmark, and the program merges the fields.
  await user.post('/bookmarks/edit', { id, title: 'There', tags: ['a', 'b'] });
  write(`${id}.json`, { ...read(`${id}.json`), comment: 'from the folder', tags: ['a', 'c'] });
  expect(await run()).toMatchObject({ code: 0, out: '', err: '' });
  const merged = { url: 'http://there/', title: 'There', comment: 'from the folder', tags: ['a', 'b', 'c'] };
  expect(read(`${id}.json`)).toEqual(merged);

  const mine = (await list())[1].id;
  rmSync(join(folder, `${id}.json`));
  await user.post('/bookmarks/delete', { id: mine });
  expect(await run()).toMatchObject({ code: 0, out: '', err: '' });
  expect(files()).toEqual([]);
  expect(await list()).toEqual([]);
});

test('the documented program calls the store once for each change, and writes no file if nothing changed', async () => {
  const { folder, user, run, files, write } = await openFolder();
  const bookmarks = Array.from({ length: 300 }, (_, n) => ({ url: `http://there/${n}` }));
  await user.post('/import', { bookmarks });
  for (let n = 0; n < 100; n += 1) write(`here-${n}.json`, { url: `http://here/${n}` });
  const first = await run();
  expect(files()).toHaveLength(400);
  expect(first.counts.readPage).toBe(2);
  // Each of the 100 files is added, and looked up under its final id. One batch begins and finishes all of them.
  expect(first.counts.update).toBe(102);
  expect(first.counts.read).toBe(100);
  const read = () =>
    files().map((name) => [name, statSync(join(folder, name)).ino, statSync(join(folder, name)).mtimeMs]);
  const before = read();
  const second = await run();
  expect(second).toMatchObject({ code: 0, out: '', err: '', counts: { readPage: 2 } });
  expect(second.counts.update).toBeUndefined();
  expect(second.counts.read).toBeUndefined();
  expect(read()).toEqual(before);
});

test('the documented program leaves alone what is no bookmark, what the service refuses, and names of other files', async () => {
  const { folder, user, run, files, write, list } = await openFolder();
  const { id } = (await user.post('/bookmarks/add', { url: 'http://there/' })).body;
  const bad = [null, 7, [], {}, { url: 7 }, { url: 'http://a/', title: 1 }, { url: 'http://a/', tags: 'a' }];
  bad.forEach((value, n) => void write(`bad-${n}.json`, value));
  writeFileSync(join(folder, 'torn.json'), '{"url":"http://to');
  write('refused.json', { url: 'ftp://refused/' });
  write(`${id}.json`, { url: 'http://mine/' });
  const texts = () => files().map((name) => [name, readFileSync(join(folder, name), 'utf8')]);
  const before = texts().filter(([name]) => !/^\d/.test(name!));
  const { code, out, err } = await run();
  expect(code).toBe(0);
  expect(err.split('\n')).toHaveLength(bad.length + 1);
  expect(JSON.parse(out)).toMatchObject({ kind: 'refused', intent: { bookmark: { url: 'ftp://refused/' } } });
  expect(texts()).toEqual(expect.arrayContaining(before));
  expect((await list()).map(({ url }: { url: string }) => url)).toEqual(['http://there/', 'http://mine/']);
  expect(files()).toContain(`${id}-2.json`);
  // A file that was refused is tried again only when it changes.
  expect((await run()).out).toBe('');
  write('refused.json', { url: 'http://accepted/' });
  await run();
  expect((await list()).at(-1)).toMatchObject({ url: 'http://accepted/' });
});

test('the documented program says that it is offline, and sends everything once later', async () => {
  const { user, run, write, list, read } = await openFolder();
  write('mine.json', { url: 'http://mine/', title: 'Mine' });
  expect(await run('http://127.0.0.1:9')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^http:\/\/127\.0\.0\.1:9\/.*Nothing is lost: run this program again\.$/),
  });
  write('mine.json', { url: 'http://mine/', title: 'Edited', tags: ['a'] });
  expect(await run()).toMatchObject({ code: 0, out: '', err: '' });
  expect(await list()).toMatchObject([{ url: 'http://mine/', title: 'Edited', tags: [{ name: 'a' }] }]);
  // Without its notes, as after a kill, the program recognizes the bookmark by its url, and loses nothing.
  await user.post('/bookmarks/edit', { id: (await list())[0].id, comment: 'theirs' });
  write('.known', []);
  write('mine.json', { url: 'http://mine/', title: 'Again' });
  expect(await run()).toMatchObject({ code: 0, out: '', err: '' });
  expect(read('mine.json')).toEqual({ url: 'http://mine/', title: 'Again', comment: 'theirs', tags: ['a'] });
  expect(await list()).toHaveLength(1);
});
