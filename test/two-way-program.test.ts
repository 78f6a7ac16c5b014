import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder, removeFolder } from './support/folders.ts';
import { useService } from './support/service.ts';

/** Tests the program in docs/sync-two-ways.md. */

const ROOT = join(import.meta.dirname, '..');
const exec = promisify(execFile);
const service = useService();

test('the documented program keeps a folder and the service equal in both directions', async () => {
  const folder = makeFolder('two-way-program');
  onTestFinished(() => removeFolder(folder));
  const documentation = readFileSync(join(ROOT, 'docs/sync-two-ways.md'), 'utf8');
  const program = /```ts\n([\s\S]*?)```/.exec(documentation)![1]!;
  const script = join(folder, 'folder.ts');
  writeFileSync(
    script,
    program
      .replace("'bookmark-service/client'", `'${join(ROOT, 'src/client/index.ts')}'`)
      .replace("'bookmark-service/client/sqlite'", `'${join(ROOT, 'src/client/sqlite-store.ts')}'`),
  );
  const user = await service.user();
  const env = { ...process.env, URL: `${service.origin}/api/v1`, TOKEN: user.token };
  const run = async () => (await exec(process.execPath, [script, folder], { env })).stdout;
  const files = () => readdirSync(folder).filter((name) => name.endsWith('.json'));
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const write = (name: string, value: object) => writeFileSync(join(folder, name), JSON.stringify(value));
  const list = async () => (await user.post('/bookmarks/list')).body.bookmarks;

  const { id } = (await user.post('/bookmarks/add', { url: 'http://there/', tags: ['a'] })).body;
  write('mine.json', { url: 'http://here/', title: 'Here' });
  expect(await run()).toBe('');
  expect(read(`${id}.json`)).toEqual({ url: 'http://there/', title: '', comment: '', tags: ['a'] });
  expect(await list()).toMatchObject([{ url: 'http://there/' }, { url: 'http://here/', title: 'Here' }]);

  // The service and the folder both change the bookmark, and the program merges the fields.
  await user.post('/bookmarks/edit', { id, title: 'There', tags: ['a', 'b'] });
  write(`${id}.json`, { ...read(`${id}.json`), comment: 'from the folder', tags: ['a', 'c'] });
  expect(await run()).toBe('');
  const merged = { url: 'http://there/', title: 'There', comment: 'from the folder', tags: ['a', 'b', 'c'] };
  expect(read(`${id}.json`)).toEqual(merged);

  const mine = (await list())[1].id;
  rmSync(join(folder, `${id}.json`));
  await user.post('/bookmarks/delete', { id: mine });
  expect(await run()).toBe('');
  expect(files()).toEqual([]);
  expect(await list()).toEqual([]);
});
