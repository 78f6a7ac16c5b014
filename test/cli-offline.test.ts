import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { buffer, text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { SORTS } from '../src/domain/bounds.ts';
import type { Bookmark } from '../src/domain/resources.ts';
import { type CliOptions, runCommand } from './support/cli.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { useService } from './support/service.ts';

/**
 * Tests `--offline FILE` and `sync FILE`. They keep a local copy of the bookmarks in the file. The copy can be changed
 * without a connection.
 */

const MAIN = join(import.meta.dirname, '../src/cli/main.ts');

const service = useService({ freeBookmarkLimit: 50 });

/** Opens a shell with a file for the local copy. Commands with `--offline` get neither an address nor a token. */
async function openShell() {
  const home = makeFolder('cli-offline');
  onTestFinished(() => removeFolder(home));
  const user = await service.user();
  const file = join(home, 'bookmarks.sqlite');
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token, XDG_CONFIG_HOME: home };
  const run = (args: string[], options: CliOptions = {}) => runCommand(args, { env, ...options });
  const offline = (...args: string[]) =>
    runCommand([...args, '--offline', file], { env: { XDG_CONFIG_HOME: home } });
  const all = async (): Promise<Bookmark[]> => (await user.post('/bookmarks/list')).body.bookmarks;
  return { user, file, env, run, offline, all };
}

/** Runs a command in a new process. */
function start(args: string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...process.env, ...env } });
  const end = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([out, err]) => ({ code: child.exitCode, signal: child.signalCode, out, err }),
  );
  return { child, end };
}

test('changes by add, edit and rm show at once while offline, and sync FILE sends them', async () => {
  const { user, file, run, offline, all } = await openShell();
  const { id } = (await user.post('/bookmarks/add', { url: 'http://old/' })).body;
  const { id: gone } = (await user.post('/bookmarks/add', { url: 'http://gone/' })).body;
  expect(await run(['sync', file])).toMatchObject({
    code: 0,
    out: '2 bookmarks; 0 local changes processed\n',
  });
  expect((await offline('add', 'new.example.org', '--tag', 'a,b')).out).toBe(
    'Added -1  https://new.example.org\n',
  );
  expect((await offline('edit', '-1', '--title', 'New')).out).toBe('Changed -1  New\n');
  expect((await offline('edit', '-1', String(id), '--add-tag', 'c', '--remove-tag', 'A')).code).toBe(0);
  expect((await offline('rm', String(gone))).out).toBe(`Deleted ${gone}\n`);
  const { bookmarks } = JSON.parse((await offline('list', '--json')).out);
  expect(bookmarks).toMatchObject([
    { id: -1, url: 'https://new.example.org', title: 'New', tags: [{ name: 'b' }, { name: 'c' }] },
    { id, tags: [{ name: 'c' }] },
  ]);
  expect(await all()).toHaveLength(2);
  expect((await run(['sync', file])).out).toBe('2 bookmarks; 5 local changes processed\n');
  expect((await user.post('/trash/list')).body.bookmarks).toMatchObject([{ id: gone }]);
  expect(await all()).toMatchObject([
    { id, tags: [{ name: 'c' }] },
    { url: 'https://new.example.org', title: 'New', tags: [{ name: 'b' }, { name: 'c' }] },
  ]);
  expect(JSON.parse((await offline('list', '--json')).out).bookmarks).toEqual(await all());
  expect(JSON.parse((await run(['sync', file, '--json'])).out)).toEqual({
    bookmarks: 2,
    pending: 0,
    reports: [],
  });
});

test('sync FILE prints conflicts once, and fails if a change was not applied', async () => {
  const { user, file, run, offline } = await openShell();
  const { id } = (await user.post('/bookmarks/add', { url: 'http://both/' })).body;
  const { id: gone } = (await user.post('/bookmarks/add', { url: 'http://gone/' })).body;
  await run(['sync', file]);
  await offline('edit', String(id), '--title', 'here');
  await user.post('/bookmarks/edit', { id, title: 'there' });
  const settled = await run(['sync', file, '--on-conflict', 'mine']);
  expect(settled).toMatchObject({
    code: 0,
    out:
      `${id}: title was changed on both sides: here "here", there "there"; kept "here"\n` +
      '2 bookmarks; 1 local change processed\n',
  });
  await offline('edit', String(gone), '--title', 'lost', '--tag', 'kept');
  await offline('add', 'http://long/', '--title', 'x'.repeat(3_000));
  await user.post('/bookmarks/delete', { id: gone });
  const failed = await run(['sync', file]);
  expect(failed.code).toBe(1);
  expect(failed.err).toContain('2 local changes could not be applied');
  expect(failed.out).toContain(
    `${gone}: not applied because it was deleted elsewhere: title "lost", tags +kept\n`,
  );
  expect(failed.out).toMatch(
    /^-\d+ \(http:\/\/long\/\): not applied because the service refused it: .*title.*$/m,
  );
  expect(await run(['sync', file])).toMatchObject({
    code: 0,
    out: '1 bookmark; 0 local changes processed\n',
  });
});

test('sync FILE --verify sends changes, repairs the file and prints what was wrong', async () => {
  const { user, file, run, offline, all } = await openShell();
  for (const tags of [['x'], ['x'], []]) await user.post('/bookmarks/add', { url: 'http://a/', tags });
  await run(['sync', file]);
  const [a, b, c] = await all();
  const [tag] = a!.tags;
  await offline('edit', String(c!.id), '--title', 'new');
  using db = new DatabaseSync(file);
  db.exec(`delete from bookmarks where id = ${a!.id};
    delete from bookmark_tags where bookmark_id = ${b!.id};
    update tags set name = 'y'`);
  const expected = { code: 0, out: '3 bookmarks; 0 local changes processed; verified, 0 faults repaired\n' };
  expect(await run(['sync', file, '--verify'])).toMatchObject({
    code: 0,
    out: `tag ${tag!.id}: had another name in the file
${a!.id}: was missing in the file
${b!.id}: had other tags in the file
3 bookmarks; 1 local change processed; verified, 3 faults repaired
`,
  });
  expect(await run(['sync', file, '--verify'])).toMatchObject(expected);
  expect(JSON.parse((await offline('list', '--json')).out).bookmarks).toEqual(await all());
  db.exec(`update bookmarks set updated_at = '2001-01-01T00:00:00.000Z' where id = ${a!.id}`);
  expect(JSON.parse((await run(['sync', file, '--verify', '--json'])).out)).toEqual({
    bookmarks: 3,
    pending: 0,
    reports: [],
    faults: [{ kind: 'stale', bookmark: a!.id }],
  });
});

test('an invalid change is refused before it is stored', async () => {
  const { file, run, offline } = await openShell();
  expect(await offline('add', 'mailto:a@b')).toMatchObject({ code: 2 });
  for (const time of ['soon', '2026', 'Jan 5 2026'])
    expect(await offline('add', 'http://a/', '--created-at', time)).toMatchObject({ code: 2 });
  expect(await offline('edit', '-1', '--title', 'x')).toMatchObject({ code: 3 });
  expect(await offline('rm', '7')).toMatchObject({ code: 3 });
  expect(await offline('rm', '7', '--permanently')).toMatchObject({ code: 2 });
  expect((await run(['rm', '-1'])).err).toContain('--offline FILE');
  expect(await run(['sync', file, '--follow'])).toMatchObject({ code: 2 });
  expect(await run(['sync', '--on-conflict', 'mine'])).toMatchObject({ code: 2 });
  expect(await run(['sync', '--verify'])).toMatchObject({ code: 2 });
  expect((await offline('list')).out).toBe('');
});

test('sync FILE loses no write and sends none twice, no matter at which request it is killed', async () => {
  const { user, file, env, offline, all } = await openShell();
  const { id } = (await user.post('/bookmarks/add', { url: 'http://edited/' })).body;
  let onRequest: (moment: 'before' | 'after') => void = () => {};
  const proxy = createServer(async (request, response) => {
    onRequest('before');
    const { host: _, connection: __, ...headers } = request.headers;
    const received = await fetch(service.origin + request.url, {
      method: 'POST',
      headers: headers as Record<string, string>,
      body: (await buffer(request)) as Buffer<ArrayBuffer>,
    });
    const body = Buffer.from(await received.arrayBuffer());
    onRequest('after');
    if (!response.destroyed) response.writeHead(received.status).end(body);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const viaProxy = { ...env, BOOKMARKS_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
  expect(await start(['sync', file], viaProxy).end).toMatchObject({ code: 0 });
  let rounds = 0;
  for (const moment of ['before', 'after'] as const) {
    for (let at = 1, isKilled = true; isKilled; at += 1, rounds += 1) {
      await offline('add', `http://round/${rounds}`);
      await offline('edit', String(id), '--title', `round ${rounds}`);
      const { child, end } = start(['sync', file], viaProxy);
      let left = at;
      onRequest = (now) => {
        if (now === moment) left -= 1;
        if (now === moment && left === 0) child.kill('SIGKILL');
      };
      const { signal, code } = await end;
      onRequest = () => {};
      isKilled = signal === 'SIGKILL';
      if (!isKilled) expect(code).toBe(0);
    }
  }
  const { out, code } = await start(['sync', file, '--json'], viaProxy).end;
  expect([code, JSON.parse(out)]).toEqual([0, { bookmarks: rounds + 1, pending: 0, reports: [] }]);
  expect((await all()).map(({ url }) => url)).toEqual([
    'http://edited/',
    ...Array.from({ length: rounds }, (_, n) => `http://round/${n}`),
  ]);
  expect((await all())[0]!.title).toBe(`round ${rounds - 1}`);
  expect(rounds).toBeGreaterThan(8);
});

test('several processes may write to one new file and synchronise it at once', async () => {
  const { file, env, run, all } = await openShell();
  const urls = Array.from({ length: 4 }, (_, n) => `http://at-once/${n}`);
  const adding = urls.map((url) => start(['add', url, '--offline', file], env).end);
  for (const { code, err } of await Promise.all(adding)) expect([code, err]).toEqual([0, '']);
  const syncing = [1, 2, 3].map(() => start(['sync', file], env).end);
  for (const { code, err } of await Promise.all(syncing)) expect([code, err]).toEqual([0, '']);
  expect((await all()).map(({ url }) => url).sort()).toEqual(urls);
  expect((await run(['sync', file])).out).toBe('4 bookmarks; 0 local changes processed\n');
});

test('a file that SQLite cannot open is an error that names it', async () => {
  const { env, run } = await openShell();
  for (const file of [env.XDG_CONFIG_HOME, join(env.XDG_CONFIG_HOME, 'missing/x.sqlite')]) {
    const { code, err } = await run(['add', 'a.example', '--offline', file, '--json']);
    expect([code, JSON.parse(err)]).toMatchObject([
      1,
      { error: expect.stringContaining(file), code: 'FAILED' },
    ]);
  }
});

test.each([
  [['list']],
  [['search', 'x']],
  [['get', '1']],
  [['open', '1']],
  [['edit', '1', '--title', 'x']],
  [['rm', '1']],
])('%j of a file that does not exist fails, and creates no file', async (args) => {
  const { file, offline } = await openShell();
  expect(await offline(...args)).toMatchObject({
    code: 3,
    err: `bookmarks: ${file}: no such file\nMake a local copy: bookmarks sync ${file}\n`,
  });
  expect(existsSync(file)).toBe(false);
});

test('search, get and open give the same offline as with a connection, and include changes that are not sent', async () => {
  const { user, env, file, run, offline } = await openShell();
  const entries = [
    ['https://b.example/1', 'Zürich', ['Work/A']],
    ['https://a.example/2', 'alpha', ['Work']],
    ['https://www.a.example/3', 'Über alpha', []],
    ['https://c.example/?x', 'beta', ['done', 'x']],
    ['https://www.Alpha-1.example/', '', []],
    // In these, letters beyond U+FFFF, a tab, percent-encoded letters, and letters after the 200th decide the order.
    ['https://d.example/%C3%B6', '', []],
    ['https://e.example/', 'd.example/%c3%b6', []],
    ['https://f.example/', '\u{1f600}', []],
    ['https://g.example/', '\uff21', []],
    ['https://h.example/', 'alpha\tc', []],
    ['https://i.example/', 'alpha b', []],
    ['https://j.example/', `${'n'.repeat(200)}b`, []],
    ['https://k.example/', `${'n'.repeat(200)}a`, []],
  ] as const;
  const bookmarks = entries.map(([url, title, tags], i) => ({
    ...{ url, title, tags: [...tags] },
    created_at: `2026-01-0${[3, 1, 4, 2, 5][i % 5]}T12:00:00Z`,
  }));
  await user.post('/import', { bookmarks });
  await run(['sync', file]);
  const searches = [
    ...SORTS.map((sort) => ['--sort', sort]),
    ...[['alpha'], ['ÜBER'], ['"er al"'], ['tag:work'], ['under:work'], ['-tag:done'], ['is:untagged']],
    ...[
      ['-alpha'],
      ['a', '-"er al"'],
      ['beta', 'OR', 'tag:Work'],
      ['ber OR beta', '-tag:x', 'alpha OR c.example'],
    ],
    ...[['site:a.example'], ['after:2026-01-03'], ['--before', '2026-01-03'], ['?x'], ['nothing']],
    ['--per-page', '2', '--page', '2'],
  ];
  const show = ({ out }: { out: string }) => {
    const { next_cursor: _, ...page } = JSON.parse(out);
    return page;
  };
  for (const args of searches)
    expect(show(await offline('search', '--json', ...args)), args.join(' ')).toEqual(
      show(await run(['search', '--json', ...args])),
    );
  await offline('add', 'https://new.example/', '--title', 'alpha new');
  expect((await offline('search', 'alpha')).out.split('\n')[0]).toMatch(/^-1\t/);
  expect((await offline('get', '-1')).out).toContain('alpha new');
  expect((await offline('get', 'HTTPS://A.example:443/2')).out).toContain('alpha');
  for (const missing of ['999999', '-7', 'https://missing.example/'])
    expect((await offline('get', missing)).code).toBe(3);
  const opened = await runCommand(['open', '-1', '--offline', file], {
    env: { XDG_CONFIG_HOME: env.XDG_CONFIG_HOME, BROWSER: 'true' },
  });
  expect(opened).toMatchObject({ code: 0, out: 'Opened https://new.example/\n' });
});
