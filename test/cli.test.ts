import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SqliteStore } from '../src/client/sqlite-store.ts';
import type { Bookmark } from '../src/domain/resources.ts';
import { type CliOptions, runCommand } from './support/cli.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { type TestUser, useService } from './support/service.ts';

/** Tests the command line with a running service. */

const SAMPLES = join(import.meta.dirname, 'samples');
const MAIN = join(import.meta.dirname, '../src/cli/main.ts');

const service = useService({ freeBookmarkLimit: 200_000 });

const makeHome = () => {
  const home = makeFolder('cli');
  onTestFinished(() => removeFolder(home));
  return home;
};

/** Opens a shell with a user's token in the environment. */
async function openShell(given?: TestUser) {
  const user = given ?? (await service.user());
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token, XDG_CONFIG_HOME: makeHome() };
  const run = (args: string[], options: CliOptions = {}) => runCommand(args, { env, ...options });
  const all = async (): Promise<Bookmark[]> => (await user.post('/export')).body.bookmarks;
  return { user, env, run, all };
}

/** Returns the objects in an output that has one JSON object in each line. */
const readLines = (out: string) =>
  out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** Returns the imported fields, without those that the service sets itself. */
const essence = (bookmarks: Bookmark[]) =>
  bookmarks.map(({ url, title, comment, tags, created_at }) => ({
    url,
    title,
    comment,
    tags: tags.map(({ name }) => name),
    created: created_at,
  }));

describe('import', () => {
  test('reports what it imported, skipped and omitted, and what the service refused', async () => {
    const { run } = await openShell();
    const chrome = await run(['import', join(SAMPLES, 'chrome.html')]);
    expect(chrome.out).toContain('5 bookmarks in a browser’s bookmark file; 1 duplicate combined');
    expect(chrome.out).toContain('Imported 5 bookmarks\n');
    expect(chrome.out).toContain('Left out: 2');
    const again = await run(['import', join(SAMPLES, 'chrome.html')]);
    expect(again.out).toContain('Imported 0 bookmarks, 5 skipped because they already exist');
    const own = await run(['import', join(SAMPLES, 'bookmark-service.json')]);
    expect(own.out).toContain('Refused by the service: 1');
    expect(own.out).toContain('entry 3 (mailto:somebody@example.org): url: expected an http or https url');
    expect(own).toMatchObject({
      code: 1,
      err: expect.stringContaining('the service refused 1 of 3 bookmarks'),
    });
  });

  test('reads standard input, adds a tag to every bookmark, and ignores folders on request', async () => {
    const { run, all } = await openShell();
    const input = readFileSync(join(SAMPLES, 'chrome.html'));
    await run(['import', '-', '--no-folders', '--tag', 'from chrome,2026'], { input });
    expect(new Set((await all()).flatMap(({ tags }) => tags.map(({ name }) => name)))).toEqual(
      new Set(['2026', 'from chrome']),
    );
  });

  test('changes nothing with --dry-run', async () => {
    const { run, all } = await openShell();
    const { out } = await run(['import', join(SAMPLES, 'firefox.html'), '--dry-run', '--json']);
    expect(JSON.parse(out)).toMatchObject({ format: 'netscape', read: 4 });
    expect(await all()).toEqual([]);
  });

  test('reports before the import what the service will refuse, and writes all of it to a file', async () => {
    const { run, env } = await openShell();
    const long = (length: number) => 'x'.repeat(length);
    const url = 'https://example.org/';
    const bookmarks: unknown[] = [
      { url, tags: [{ id: 1, name: 'a' }] },
      ...[{ url: 'ftp://example.org/' }, { url: 'no url' }, {}, 'text', null, { url: 7 }],
      ...[{ title: long(2_049) }, { comment: 'a\u0000' }, { created_at: 'soon' }].map((fields) => ({
        url,
        ...fields,
      })),
      ...['a', ['a', ''], [long(256)], Array.from({ length: 101 }, (_, i) => `t${i}`), [7]].map((tags) => ({
        url,
        tags,
      })),
      ...[`https://${long(254)}/`, url + long(9_000)].map((each) => ({ url: each })),
    ];
    const file = join(env.XDG_CONFIG_HOME, 'own.json');
    const skipped = join(env.XDG_CONFIG_HOME, 'skipped.csv');
    writeFileSync(file, JSON.stringify({ bookmarks }));
    const before = JSON.parse((await run(['import', file, '--dry-run', '--json', '--skipped', skipped])).out);
    const after = JSON.parse((await run(['import', file, '--json'])).out);
    const plain = (errors: { index: number; url: string | null; error: string }[]) =>
      errors.map(({ index, url: of, error }) => ({ index, url: of, error }));
    expect(after.errors).toHaveLength(bookmarks.length - 1);
    expect(plain(before.refused)).toEqual(plain(after.errors));
    expect(readFileSync(skipped, 'utf8').split('\r\n')).toHaveLength(bookmarks.length + 1);
  });

  test('reports which folders become which tags', async () => {
    const { run } = await openShell();
    const { out } = await run(['import', join(SAMPLES, 'chrome.html'), '--dry-run']);
    expect(out).toContain('Folders that become tags: 3');
    expect(out).toContain('  Development › C & C++: tag Development/C & C++, 1 bookmark');
  });

  test('replaces the collection only after the user confirmed it', async () => {
    const { run, all, user } = await openShell();
    await user.post('/bookmarks/add', { url: 'https://example.org/old' });
    const replace = ['import', join(SAMPLES, 'table.csv'), '--replace'];
    const unasked = await run(replace);
    expect(unasked.code).toBe(2);
    expect(unasked.err).toContain('--yes');
    const refused = await run(replace, { screen: 100, input: 'n\n' });
    expect(refused.err).toContain('Replace ALL your bookmarks with 2 bookmarks from the file? [y/N]');
    expect(refused.err).toContain('nothing was changed');
    expect(await all()).toHaveLength(1);
    expect((await run(replace, { screen: 100, input: 'y\n' })).code).toBe(0);
    expect((await all()).map(({ url }) => url)).not.toContain('https://example.org/old');
    expect((await run([...replace, '--yes'])).code).toBe(0);
  });

  test.each([
    ['an empty export', 'empty.json', '{"bookmarks":[]}'],
    ['an empty page', 'empty.html', '<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p>\n</DL><p>\n'],
    ['a table without rows', 'empty.csv', 'url,title,note,folder,tags,created\n'],
  ])('asks for confirmation before %s replaces all bookmarks by none', async (_, name, text) => {
    const { run, all, user, env } = await openShell();
    await user.post('/bookmarks/add', { url: 'https://example.org/old' });
    const file = join(env.XDG_CONFIG_HOME, name);
    writeFileSync(file, text);
    const replace = ['import', file, '--replace'];
    expect((await run(replace)).code).toBe(2);
    const { code, err } = await run(replace, { screen: 100, input: 'n\n' });
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('Replace ALL your bookmarks with 0 bookmarks from the file?'),
    ]);
    expect(await all()).toHaveLength(1);
    expect((await run(replace, { screen: 100, input: 'y\n' })).code).toBe(0);
    expect(await all()).toEqual([]);
  });

  test('reads UTF-16 and the encoding that a META element names, and reports what it cannot read', async () => {
    const { run, all } = await openShell();
    const html = readFileSync(join(SAMPLES, 'firefox.html'), 'utf8');
    const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(html, 'utf16le')]);
    expect((await run(['import', '-'], { input: utf16 })).code).toBe(0);
    const latin = `<!DOCTYPE NETSCAPE-Bookmark-file-1><META CONTENT="text/html; charset=windows-1252">
      <DL><p><DT><A HREF="https://example.org/latin">B\u00fccher</A></DL>`;
    expect((await run(['import', '-'], { input: Buffer.from(latin, 'latin1') })).code).toBe(0);
    expect((await all()).filter(({ title }) => title === 'Bücher')).toHaveLength(2);
    const faults = [
      [Buffer.from('\xcf\xf0\xe8\xe2\xe5\xf2', 'latin1'), 'the file is not text in utf-8; save it as UTF-8'],
      ['', 'the file is empty'],
      ['{"bookmarks":[{"url":"https', 'the file is not complete JSON'],
      ['{"other":{}}', 'the file contains unknown JSON; expected a JSON export of this service'],
      ['<html><body>Hello</body></html>', 'the file contains HTML without bookmarks'],
      ['just words', 'the file format is unknown; expected a JSON export of this service'],
    ] as const;
    for (const [input, message] of faults) {
      const { code, err } = await run(['import', '-'], { input: input as string });
      expect(err).toContain(message);
      expect(code).toBe(1);
    }
  });

  test('imports 100,000 bookmarks at once, and refuses to split a larger file', async () => {
    const { run } = await openShell();
    const bookmarks = Array.from({ length: 100_001 }, (_, i) => ({ url: `https://example.org/${i % 50}` }));
    const tooMany = await run(['import', '-'], { input: JSON.stringify({ bookmarks }) });
    expect(tooMany.err).toContain('contains 100,001 bookmarks; an import takes at most 100,000');
    expect(tooMany.err).toContain('one transaction');
    bookmarks.pop();
    const whole = await run(['import', '-'], { input: JSON.stringify({ bookmarks }), screen: 100 });
    expect(whole.out).toContain('Imported 50 bookmarks');
    expect(whole.err).toContain('uploading, 0.0 of ');
    expect(whole.err).toContain('the service is importing 100,000 bookmarks');
    // The last bytes delete the line that showed the progress.
    expect(whole.err.endsWith('\r\u001b[2K')).toBe(true);
  });
});

describe('export', () => {
  test('to JSON restores the same collection if the file is imported by replace', async () => {
    const { run, all, env } = await openShell();
    await run(['import', join(SAMPLES, 'raindrop.csv')]);
    await run(['import', join(SAMPLES, 'chrome.html')]);
    const before = essence(await all());
    const file = join(env.XDG_CONFIG_HOME, 'export.json');
    const { out } = await run(['export', file, '--json']);
    expect(JSON.parse(out)).toEqual({ file, bytes: statSync(file).size });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await run(['import', file, '--replace', '--yes']);
    expect(essence(await all())).toEqual(before);
    expect(JSON.parse((await run(['export'])).out).bookmarks).toHaveLength(8);
  });

  test.each([
    ['a.html', [], '<!DOCTYPE'],
    ['a.HTM', [], '<!DOCTYPE'],
    ['a.html', ['--format', 'json'], '{"bookmarks"'],
    ['a.json', ['--format', 'html'], '<!DOCTYPE'],
    ['a', [], '{"bookmarks"'],
  ])('to %s with %j uses the format that the name or the option says', async (name, options, begin) => {
    const { run, env } = await openShell();
    const file = join(env.XDG_CONFIG_HOME, name);
    expect((await run(['export', file, ...options])).code).toBe(0);
    expect(readFileSync(file, 'utf8').startsWith(begin)).toBe(true);
  });

  test('to HTML can be imported by browsers, and by this service without loss except milliseconds', async () => {
    const one = await openShell();
    for (const sample of ['chrome.html', 'firefox.html', 'raindrop.csv', 'linkding.html']) {
      await one.run(['import', join(SAMPLES, sample)]);
    }
    const html = (await one.run(['export', '--format', 'html'])).out;
    expect(html.startsWith('<!DOCTYPE NETSCAPE-Bookmark-file-1>\n')).toBe(true);
    const other = await openShell();
    await other.run(['import', '-'], { input: html });
    const seconds = (bookmarks: Bookmark[]) =>
      essence(bookmarks)
        .map((bookmark) => ({ ...bookmark, created: bookmark.created.slice(0, 19) }))
        .sort((a, b) => (a.url < b.url ? -1 : 1));
    expect(seconds(await other.all())).toEqual(seconds(await one.all()));
  });

  test('to HTML makes folders of tags without a path on request, and keeps them as tags', async () => {
    const { run, user } = await openShell();
    await user.post('/bookmarks/add', {
      url: 'https://a.example/',
      title: 'A',
      tags: ['plain', 'Work/Deep', 'Work'],
    });
    const { out } = await run(['export', '--format', 'html', '--tag-folders']);
    expect(out.match(/(?<=<H3>)[^<]*|TAGS="[^"]*"/g)).toEqual([
      'plain',
      'TAGS="plain"',
      'Work',
      'Deep',
      'TAGS="plain"',
      'TAGS="plain"',
    ]);
    expect((await run(['export', '--tag-folders'])).code).toBe(2);
  });

  test('writes to standard output for -, and CSV to a file with that extension', async () => {
    const { run, env, user } = await openShell();
    await user.post('/bookmarks/add', { url: 'https://example.org/a,b', title: 'A "B"', tags: ['x'] });
    expect(JSON.parse((await run(['export', '-'])).out)).toMatchObject({ count: 1 });
    const file = join(env.XDG_CONFIG_HOME, 'all.csv');
    await run(['export', file]);
    const [head, row] = readFileSync(file, 'utf8').split('\r\n');
    expect(head).toBe('\ufeffurl,title,note,tags,created,updated_at');
    expect(row).toContain('"https://example.org/a,b","A ""B""",,x,20');
  });

  test('leaves the old file unchanged if the new one cannot be written', async () => {
    const { run, env } = await openShell();
    const file = join(env.XDG_CONFIG_HOME, 'export.json');
    writeFileSync(file, 'of yesterday');
    const broken = await run(['export', file], { env: { ...env, BOOKMARKS_TOKEN: 'bka_1_wrong' } });
    expect(broken.code).toBe(4);
    expect(readFileSync(file, 'utf8')).toBe('of yesterday');
    await run(['add', 'https://example.org/', '--no-fetch']);
    const nowhere = join(env.XDG_CONFIG_HOME, 'no/folder.json');
    for (const args of [
      ['export', nowhere],
      ['sync', '--cursor-file', nowhere],
    ])
      expect((await run(args)).err).toMatch(`bookmarks: ${nowhere}: no such file or folder\n`);
  });

  test('follows a symbolic link, and replaces only regular files', async () => {
    const { run, env } = await openShell();
    const [file, link, pipe] = ['file.json', 'link.json', 'pipe'].map((name) =>
      join(env.XDG_CONFIG_HOME, name),
    ) as [string, string, string];
    writeFileSync(file, 'of yesterday');
    symlinkSync(file, link);
    expect((await run(['export', link])).code).toBe(0);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ count: 0 });
    execFileSync('mkfifo', [pipe]);
    const [text, { code }] = await Promise.all([readFile(pipe, 'utf8'), run(['export', pipe])]);
    expect([code, JSON.parse(text).count, lstatSync(pipe).isFIFO()]).toEqual([0, 0, true]);
  });
});

describe('login', () => {
  const open = () => {
    const env = { XDG_CONFIG_HOME: makeHome(), BOOKMARKS_URL: service.origin };
    const file = join(env.XDG_CONFIG_HOME, 'bookmark-service/credentials.json');
    return {
      env,
      file,
      run: (args: string[], options: CliOptions = {}) => runCommand(args, { env, ...options }),
    };
  };

  test('with an invite code stores a token that only its owner can read; logout revokes the token', async () => {
    const { run, file } = open();
    const code = await service.invite('login@example.org');
    expect((await run(['login', code])).out).toBe(
      `Logged in as login@example.org at ${service.origin}/api/v1\n`,
    );
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
    const { token } = JSON.parse(readFileSync(file, 'utf8'));
    expect(token).toMatch(/^bks_/);
    expect((await run(['whoami'])).out).toMatch(
      /^login@example\.org \(free tier\) at .*\n0 of \d+ bookmarks\ntoken: write, expires \d{4}-\d\d-\d\d\n$/,
    );
    expect((await run(['logout'])).out).toBe('Logged out\n');
    expect((await service.post('/user/profile', {}, { token })).status).toBe(401);
    expect((await run(['whoami'])).err).toContain('you are not logged in');
  });

  test('with a token stores it; logout only deletes the stored copy', async () => {
    const { run } = open();
    const user = await service.user();
    expect((await run(['login', user.token, '--json'])).out).toBe(
      `${JSON.stringify({ email: user.email, base_url: `${service.origin}/api/v1` })}\n`,
    );
    expect((await run(['logout'])).out).toContain('Deleted the stored token');
    expect((await user.post('/user/profile')).status).toBe(200);
  });

  test('logout --revoke revokes an API token too', async () => {
    const { run } = open();
    const user = await service.user();
    await run(['login', user.token]);
    expect(await run(['logout', '--revoke', '--local'])).toMatchObject({ code: 2 });
    expect((await run(['logout', '--revoke'])).out).toBe('Logged out\n');
    expect((await user.post('/user/profile')).body.code).toBe('INVALID_TOKEN');
  });

  test('with --paste asks for the token without showing what is typed, or reads standard input', async () => {
    const user = await service.user();
    const asked = await open().run(['login', '--paste'], { input: `${user.token}\n`, screen: 100 });
    expect(asked.code).toBe(0);
    expect(asked.err).toContain('API token: ');
    expect(asked.err).not.toContain(user.token);
    const piped = await open().run(['login'], { input: `${user.token}\n` });
    expect(piped.out).toContain(user.email);
    expect(piped.err).toBe('');
  });

  test('explains what is wrong with a code, and stores nothing', async () => {
    const { run } = open();
    const unknown = await run(['login', 'ZZZZZZZZ']);
    expect(unknown.err).toContain('this code is unknown, expired or already used');
    expect((await run(['login', 'nonsense!'])).err).toContain('neither a code nor a token');
    expect((await run(['login', 'bka_1_wrong'])).err).toContain('Log in again');
    expect((await run(['list'])).err).toContain('you are not logged in');
  });

  test('sends a token only to the service that issued it', async () => {
    const { run } = open();
    const user = await service.user();
    await run(['login', user.token]);
    const elsewhere = await run(['list', '--url', 'http://127.0.0.1:9/api/v1']);
    expect(elsewhere.err).toContain('you are not logged in at http://127.0.0.1:9/api/v1');
  });

  test('accepts an address without the version, and remembers it', async () => {
    const env = { XDG_CONFIG_HOME: makeHome() };
    const user = await service.user();
    await runCommand(['login', user.token, '--url', `${service.origin}/`], { env });
    expect((await runCommand(['whoami'], { env })).out).toContain(`${service.origin}/api/v1`);
    expect((await runCommand(['whoami', '--url', 'ftp://example.org'], { env })).err).toContain(
      'ftp://example.org is not the address of a service',
    );
  });

  test('warns if a token would be sent unencrypted', async () => {
    const { run } = open();
    const { err } = await run(['login', 'nonsense!', '--url', 'http://bookmarks.example.org']);
    expect(err).toContain('is not encrypted');
  });
});

describe('bookmarks and tags', () => {
  const add = async (
    run: Awaited<ReturnType<typeof openShell>>['run'],
    ...args: string[]
  ): Promise<Bookmark> => JSON.parse((await run(['add', '--no-fetch', ...args, '--json'])).out);

  test('can be added, changed, found, listed and deleted', async () => {
    const { run, all } = await openShell();
    const first = await add(run, 'https://example.org/1', '--title', 'First', '-t', 'a', '-t', 'b,c');
    expect(first.tags.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    const second = await add(run, 'https://example.org/2', '--comment', 'the second');
    expect((await run(['edit', String(second.id), '--title', 'Second', '-t', 'b'])).out).toBe(
      `Changed ${second.id}  Second\n`,
    );
    const third = ['add', '--no-fetch', 'https://example.org/3', '--created-at', '2001-02-03T04:05:06Z'];
    const { id, created_at } = await add(run, ...third.slice(2));
    expect(created_at).toBe('2001-02-03T04:05:06.000Z');
    expect((await run([...third, '--on-duplicate', 'return'])).out).toBe(
      `Saved as ${id}  https://example.org/3\n`,
    );
    expect((await run([...third, '--on-duplicate', 'error'])).err).toContain('another bookmark has this url');
    await run(['edit', String(id), '--new-url', 'https://example.org/4']);
    expect((await all()).map(({ url }) => url)).toContain('https://example.org/4');
    await run(['rm', String(id)]);
    const found = await run(['search', 'second', '--tag', 'b', '--json']);
    expect(JSON.parse(found.out)).toMatchObject({
      total: 1,
      bookmarks: [{ id: second.id, comment: 'the second' }],
    });
    for (const given of [String(second.id), 'HTTPS://EXAMPLE.org:443/2']) {
      expect(JSON.parse((await run(['get', given, '--json'])).out).bookmarks).toMatchObject([
        { id: second.id },
      ]);
    }
    expect(await run(['get', 'https://example.org/3'])).toMatchObject({
      code: 3,
      out: '',
      err: 'bookmarks: no bookmark has the url https://example.org/3\n',
    });
    expect((await run(['get', '1'])).code).toBe(3);
    const listed = await run(['list', '--json']);
    expect(JSON.parse(listed.out).bookmarks.map(({ id }: Bookmark) => id)).toEqual([first.id, second.id]);
    await run(['edit', String(first.id), '--no-tags']);
    expect((await all())[0]!.tags).toEqual([]);
    const both = [String(first.id), String(second.id)];
    const tagged = ['edit', ...both, '--add-tag', 'x,y', '--remove-tag', 'b'];
    expect((await run(tagged)).out).toBe(`Changed ${both.join(', ')}\n`);
    for (const { tags } of await all()) expect(tags.map(({ name }) => name)).toEqual(['x', 'y']);
    expect((await run(['edit', ...both, '--title', 'x'])).err).toContain('on one bookmark at a time');
    const partly = await run(['edit', both[0]!, '1', '--add-tag', 'z']);
    expect([partly.code, partly.err]).toEqual([
      3,
      expect.stringMatching(`^Changed ${first.id}\n.*1 does not exist`),
    ]);
    expect((await run(['rm', String(first.id), String(second.id)])).out).toBe(
      `Deleted ${first.id}, ${second.id}\n`,
    );
    expect(await all()).toEqual([]);
  });

  test('adds https:// to a host name', async () => {
    const { run, all } = await openShell();
    for (const typed of ['example.org/a:b', 'müller.example/weg', 'see (localhost:3/)', 'Look: http://a/.'])
      await run(['add', '--no-fetch', typed]);
    expect((await all()).map(({ url }) => url)).toEqual([
      'https://example.org/a:b',
      'https://müller.example/weg',
      'http://a/',
    ]);
  });

  test('add names the existing bookmarks with the same url, unless the user asked for another one', async () => {
    const { run } = await openShell();
    const { id } = await add(run, 'https://example.org/a');
    const again = await run(['add', '--no-fetch', 'HTTPS://EXAMPLE.org:443/a', '--json']);
    expect(again.err).toContain(`already saved: ${id}`);
    expect(JSON.parse(again.out).id).not.toBe(id);
    expect((await run(['add', '--no-fetch', 'https://example.org/a', '--on-duplicate', 'add'])).err).toBe('');
  });

  test('a search understands operators, even if the shell removed their quotes', async () => {
    const { run } = await openShell();
    const one = await add(run, 'https://example.org/1', '-t', 'to read,a');
    const two = await add(run, 'https://example.net/2', '-t', 'to read');
    await add(run, 'https://example.org/3');
    const find = async (...args: string[]) =>
      JSON.parse((await run(['search', '--json', ...args])).out).bookmarks.map(({ id }: Bookmark) => id);
    expect(await find('tag:to read')).toEqual([two.id, one.id]);
    expect(await find('#to read', '-tag:a', 'example')).toEqual([two.id]);
    expect(await find('tag:"to read" site:example.org')).toEqual([one.id]);
    expect(await find('site:example.org', '--tag', 'a')).toEqual([one.id]);
    const below = await add(run, 'https://example.org/4', '-t', 'to read/b,c');
    expect(await find('under:TO READ', 'example')).toEqual([below.id, two.id, one.id]);
    expect(await find('under:to read', '--tag-under', 'c')).toEqual([below.id]);
    await run(['tags', 'rename', 'to read', 'later', '--with-children']);
    expect(await find('tag:later/b')).toEqual([below.id]);
    await run(['tags', 'rename', 'later', 'to read', '--with-children']);
    expect(await find('example', '-/1', '-.net', '-tag:c')).toHaveLength(1);
    expect(await find('example', '--', '-/1', '-.net', '-tag:c')).toHaveLength(1);
    expect(await find('-"example net"', '/1', 'OR', '/2', '-tag:a')).toEqual([two.id]);
    expect(await find('/1 OR tag:c', '-t', 'a')).toEqual([one.id]);
    expect(await find('Zebra: book', 'C:')).toEqual([]);
    expect((await run(['search', 'Zebra: book', 'std::move'])).err).not.toContain('operator');
    const or = await run(['search', 'site:a.example', 'OR', 'site:b.example']);
    expect(or.err).toContain('site:a.example OR site:b.example cannot be joined by OR');
    const unknown = await run(['search', 'author:me']);
    expect(unknown).toMatchObject({
      code: 0,
      err: expect.stringContaining('author:me is not a valid operator'),
    });
    const contradiction = await run(['search', 'is:untagged', 'tag:a']);
    expect(contradiction.err).toContain('is:untagged cannot be combined with a tag and is ignored');
  });

  test('each option of a search means the same as its operator, and both together hold', async () => {
    const { run } = await openShell();
    const [old, young] = [
      await add(run, 'https://a.example/1', '-t', 'x', '--created-at', '2026-01-30T12:00:00Z'),
      await add(run, 'https://b.example/2', '-t', 'x,y', '--created-at', '2026-02-02T12:00:00Z'),
    ];
    await add(run, 'https://b.example/3', '-t', 'y', '--created-at', '2026-02-03T12:00:00Z');
    const find = async (...args: string[]) => {
      const { out, err } = await run(['search', '--json', ...args]);
      return out === '' ? err : JSON.parse(out).bookmarks.map(({ id }: Bookmark) => id);
    };
    const cases: [option: string[], operator: string, found: number[]][] = [
      [['--after', '2026-02-01', 'tag:x'], 'after:2026-02-01 tag:x', [young.id]],
      [['--after', '2026-02', 'tag:x'], 'after:2026-02 tag:x', [young.id]],
      [['--before', '2026-02-01'], 'before:2026-02-01', [old.id]],
      [['--after', '2026-02-02T12:00:00Z', 'tag:x'], 'after:2026-02-03 tag:x', []],
      [['--before', '2026-02-02T14:00:00.001+02:00', 'tag:y'], 'before:2026-02-03 tag:y', [young.id]],
      [['--site', 'https://A.example/path'], 'site:a.example', [old.id]],
      [['--tag', 'y', 'tag:x'], 'tag:x tag:y', [young.id]],
      [['--without-tag', 'y', '-tag:none'], '-tag:y -tag:none', [old.id]],
      [['--tag-under', 'x', 'under:y'], 'under:x under:y', [young.id]],
    ];
    for (const [option, operator, found] of cases)
      expect([await find(...option), await find(...operator.split(' '))], operator).toEqual([found, found]);
    for (const [option, value] of [
      ['--after', 'soon'],
      ['--before', '2026-02-30'],
      ['--site', '..'],
    ] as const)
      expect(await find(option, value)).toContain(`${option}: expected `);
  });

  test('tags are shown as a tree of their paths', async () => {
    const { run } = await openShell();
    await add(run, 'https://example.org/1', '-t', 'Work/Databases,Work/Go,C\\/C++,and/,Home');
    await add(run, 'https://example.org/2', '-t', 'work/go,Home');
    expect((await run(['tags', '--tree'])).out.split('\n').sort()).toEqual(
      ['', '1\tand/', '1\tC/C++', '2\tHome', '0\tWork', '1\t  Databases', '2\t  Go'].sort(),
    );
    const { tags } = JSON.parse((await run(['tags', '--tree', '--json'])).out);
    expect(tags.find(({ name }: { name: string }) => name === 'Work')).toMatchObject({
      tag: null,
      tags: [{ tag: 'Work/Databases' }, { tag: 'Work/Go', bookmark_count: 2 }],
    });
  });

  test('a list for other programs contains all bookmarks, and separates fields by tabs', async () => {
    const { run } = await openShell();
    const long = `https://example.org/${'x'.repeat(300)}`;
    const { id } = await add(run, long, '--title', 'with\ttab and\nline', '-t', 'a');
    const { out } = await run(['list']);
    expect(out).toMatch(new RegExp(`^${id}\t\\d{4}-\\d\\d-\\d\\d\twith tab and line\t${long}\ta\n$`));
  });

  test('a table on a terminal fits the screen, has one header, and contains no control characters', async () => {
    const { run, user, env } = await openShell();
    const bookmarks = Array.from({ length: 600 }, (_, i) => ({
      url: `https://example.org/${'long/'.repeat(i % 30)}${i}`,
      title:
        i % 2 === 0
          ? `日本語のタイトル ${'あ'.repeat(i % 40)} 👩‍👩‍👧`
          : `\u001b[31mred\u0007 ${'title '.repeat(i % 20)}`,
      tags: ['some', 'tags'],
    }));
    await user.post('/import', { bookmarks });
    const { out } = await run(['list'], { screen: 80 });
    const lines = out.split('\n').slice(0, -1);
    expect(lines).toHaveLength(601);
    expect(lines[0]!.split(/ +/)).toEqual(['\u001b[1mID', 'ADDED', 'TITLE', 'URL', 'TAGS\u001b[22m']);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the output must not contain them
    expect(lines.slice(1).filter((line) => /[\u0000-\u001f]/.test(line))).toEqual([]);
    const width = (line: string) =>
      [...new Intl.Segmenter().segment(line)].reduce(
        (sum, { segment }) =>
          sum + (/[\u3040-\u30ff\u4e00-\u9fff]|\p{Emoji_Presentation}/u.test(segment) ? 2 : 1),
        0,
      );
    expect(Math.max(...lines.slice(1).map(width))).toBeLessThanOrEqual(80);
    expect((await run(['list', '--limit', '7'])).out.split('\n')).toHaveLength(8);
    const plain = await run(['list'], { screen: 80, env: { ...env, NO_COLOR: '1' } });
    expect(plain.out.split('\n')[0]!.split(/ +/)).toEqual(['ID', 'ADDED', 'TITLE', 'URL', 'TAGS']);
  });

  test('a search prints how many matches there are, and how to see more', async () => {
    const { run, user } = await openShell();
    await user.post('/import', {
      bookmarks: Array.from({ length: 5 }, (_, i) => ({ url: `https://example.org/${i}` })),
    });
    const { err } = await run(['search', 'example', '--per-page', '2', '--page', '2']);
    expect(err).toBe('5 found, 3 to 4 shown; more: --page 3\n');
    expect((await run(['search', 'nothing'])).err).toBe('0 found, none shown\n');
  });

  test('deleted bookmarks can be listed, restored, and deleted permanently', async () => {
    const { run } = await openShell();
    for (const n of [1, 2, 3]) await add(run, `https://example.org/${n}`, '--title', `Page ${n}`);
    const { bookmarks } = JSON.parse((await run(['list', '--json'])).out);
    const ids: string[] = bookmarks.map(({ id }: { id: number }) => String(id));
    expect((await run(['trash'])).err).toBe('the trash is empty\n');
    await run(['rm', ...ids]);
    expect((await run(['trash', '-n', '1'])).out).toContain('Page 3');
    expect(JSON.parse((await run(['trash', '--json'])).out).bookmarks).toHaveLength(3);
    const restored = await run(['trash', 'restore', ids[0]!, '1']);
    expect(restored.out).toMatch(new RegExp(`^Restored ${ids[0]} as \\d+\n1 is not in the trash\n$`));
    expect(await run(['trash', 'restore', ids[0]!])).toMatchObject({ code: 3 });
    expect(await run(['trash', 'rm'])).toMatchObject({ code: 2 });
    expect(await run(['trash', 'rm', ids[1]!, '--all'])).toMatchObject({ code: 2 });
    expect((await run(['trash', 'rm', ids[1]!])).out).toBe('Permanently deleted 1\n');
    expect((await run(['trash', 'rm', '--all'])).out).toBe('Permanently deleted 1\n');
    const { id } = await add(run, 'https://example.org/4');
    expect((await run(['rm', '--permanently', String(id)])).out).toBe(`Deleted ${id}\n`);
    expect((await run(['trash'])).err).toBe('the trash is empty\n');
    expect((await run(['list'])).out).toContain('Page 1');
  });

  test('tags can be listed, created, renamed and deleted by name', async () => {
    const { run } = await openShell();
    await add(run, 'https://example.org/1', '-t', 'Reading');
    await run(['tags', 'create', 'empty']);
    expect((await run(['tags'])).out).toBe('0\tempty\n1\tReading\n');
    expect(await run(['tags', 'create', ' EMPTY'])).toMatchObject({
      code: 1,
      err: 'bookmarks: the tag empty exists already\n',
    });
    expect((await run(['tags', 'create', ''])).code).toBe(2);
    expect((await run(['tags', 'rename', 'READING', 'to read'])).out).toBe('Renamed to to read\n');
    await add(run, 'https://example.org/2', '-t', 'later');
    expect((await run(['tags', 'merge', 'later', 'to read'])).out).toBe(
      'Merged later into to read; 2 bookmarks have it now\n',
    );
    expect((await run(['tags', 'merge', 'to read', 'TO READ'])).err).toContain('into itself');
    expect((await run(['tags', 'rm', 'to read'])).out).toBe('Deleted to read from 2 bookmarks\n');
    expect(JSON.parse((await run(['tags', '--json'])).out).tags).toHaveLength(1);
    expect((await run(['tags', 'rm', 'gone'])).err).toContain('there is no tag "gone"');
  });

  test('a folder is renamed and deleted with all its tags, also if no bookmark has the folder itself', async () => {
    const { run } = await openShell();
    await add(run, 'https://example.org/1', '-t', 'Work/a,Work/b/c');
    for (const command of [
      ['rename', 'work', 'Job'],
      ['rm', 'work'],
    ])
      expect(await run(['tags', ...command])).toMatchObject({
        code: 3,
        err: 'bookmarks: there is no tag "work", only tags below it\ntags rename and tags rm take --with-children\n',
      });
    expect((await run(['tags', 'rename', 'work', 'Job', '--with-children'])).out).toBe(
      'Renamed 2 tags to Job\n',
    );
    expect((await run(['tags'])).out).toBe('1\tJob/a\n1\tJob/b/c\n');
    expect((await run(['tags', 'rm', 'job/b', '--with-children'])).out).toBe(
      'Deleted job/b and all tags below it\n',
    );
    expect((await run(['tags'])).out).toBe('1\tJob/a\n');
    expect((await run(['list'])).out).toContain('https://example.org/1');
    for (const command of [
      ['rename', 'gone', 'x'],
      ['rm', 'gone'],
    ])
      expect(await run(['tags', ...command, '--with-children'])).toMatchObject({
        code: 3,
        err: 'bookmarks: the tag does not exist\n',
      });
  });
});

describe('sync', () => {
  test('prints each bookmark once, and continues from its stored cursor', async () => {
    const { run, user, env } = await openShell();
    const file = join(env.XDG_CONFIG_HOME, 'cursor');
    const ids = async () =>
      readLines((await run(['sync', '--cursor-file', file, '--json'])).out).map(({ id }) => id);
    const first = (await user.post('/bookmarks/add', { url: 'https://example.org/1' })).body.id;
    expect(await ids()).toEqual([first]);
    expect(await ids()).toEqual([]);
    const second = (await user.post('/bookmarks/add', { url: 'https://example.org/2' })).body.id;
    expect(await ids()).toEqual([second]);
    expect((await run(['sync', '--cursor', String(first)])).out).toContain('https://example.org/2');
    expect((await run(['sync', '--cursor', 'nonsense'])).err).toContain('is not a cursor');
    writeFileSync(file, '');
    expect((await run(['sync', '--cursor-file', file])).err).toContain(`${file} contains no cursor`);
  });

  test.each([[[]], [['--follow']]])(
    'stores the cursor only after printing the bookmarks: %j',
    async (options) => {
      const { run, user, env } = await openShell();
      const file = join(env.XDG_CONFIG_HOME, 'cursor');
      await user.post('/bookmarks/add', { url: 'https://example.org/1' });
      const controller = new AbortController();
      const wasStored: boolean[] = [];
      await run(['sync', ...options, '--cursor-file', file, '--json'], {
        signal: controller.signal,
        onOutput: () => {
          wasStored.push(existsSync(file));
          controller.abort();
        },
      });
      expect(wasStored).toEqual([false]);
    },
  );

  test('--follow prints each new bookmark when it is added, until it is interrupted', async () => {
    const { run, user } = await openShell();
    await user.post('/bookmarks/add', { url: 'https://example.org/before' });
    const controller = new AbortController();
    const { notifier } = service.context.coordination;
    const before = notifier.held;
    const running = run(['sync', '--follow', '--new', '--json'], {
      signal: controller.signal,
      onOutput: (out) => out.includes('/second') && controller.abort(),
    });
    await expect.poll(() => notifier.held).toBe(before + 1);
    await user.post('/bookmarks/add', { url: 'https://example.org/first' });
    await user.post('/bookmarks/add', { url: 'https://example.org/second' });
    const { code, out, err } = await running;
    expect([code, err]).toEqual([130, '']);
    const urls = readLines(out).map(({ url }) => url);
    expect(urls).toEqual(['https://example.org/first', 'https://example.org/second']);
  });
});

describe('sync --follow', () => {
  test('also prints edits, deletions and tags, and continues from its file', async () => {
    const { run, user, env } = await openShell();
    const file = join(env.XDG_CONFIG_HOME, 'cursor');
    const { body: made } = await user.post('/bookmarks/add', { url: 'https://example.org/1', tags: ['a'] });
    const followUntil = async (last: string, act: () => Promise<unknown>) => {
      const controller = new AbortController();
      const running = run(['sync', '--follow', '--cursor-file', file, '--json'], {
        signal: controller.signal,
        onOutput: (out) => out.includes(last) && controller.abort(),
      });
      await act();
      return readLines((await running).out);
    };
    expect(await followUntil('"tag"', async () => {})).toEqual([made, { tag: made.tags[0] }]);
    const seen = await followUntil('deleted_tag', async () => {
      await user.post('/bookmarks/edit', { id: made.id, title: 'edited' });
      await user.post('/bookmarks/delete', { id: made.id });
      await user.post('/tags/delete', { id: made.tags[0].id });
    });
    expect(seen.slice(-2)).toEqual([{ deleted: made.id }, { deleted_tag: made.tags[0].id }]);
    expect((await run(['sync', '--cursor-file', file])).err).toContain('written by sync --follow');
  });

  test('tells people the new name of a tag, but not the names that the tags have from the start', async () => {
    const { run, user } = await openShell();
    const { body: made } = await user.post('/bookmarks/add', { url: 'https://example.org/1', tags: ['old'] });
    const controller = new AbortController();
    let renamed: Promise<unknown> | undefined;
    const { out } = await run(['sync', '--follow'], {
      signal: controller.signal,
      onOutput: (printed) => {
        renamed ??= user.post('/tags/update', { id: made.tags[0].id, name: 'new' });
        if (printed.includes('is now named')) controller.abort();
      },
    });
    await renamed;
    const [bookmark, ...rest] = out.trimEnd().split('\n');
    expect(bookmark).toContain('old');
    expect(rest.filter((line) => line.startsWith('tag '))).toEqual([
      `tag ${made.tags[0].id} is now named new`,
    ]);
  });

  test('prints a bookmark again if it changes while the earlier bookmarks are printed', async () => {
    const { run, user } = await openShell();
    const ids: number[] = [];
    for (const n of [1, 2, 3])
      ids.push((await user.post('/bookmarks/add', { url: `https://example.org/${n}` })).body.id);
    const controller = new AbortController();
    let edited: Promise<unknown> | undefined;
    const { out } = await run(['sync', '--follow', '--cursor', String(ids[0]), '--json'], {
      signal: controller.signal,
      onOutput: (printed) => {
        edited ??= user
          .post('/bookmarks/edit', { id: ids[1], title: 'edited' })
          .then(() => user.post('/bookmarks/add', { url: 'https://example.org/last', title: 'last' }));
        if (printed.includes('/last')) controller.abort();
      },
    });
    await edited;
    expect(
      readLines(out)
        .slice(0, -1)
        .map(({ id, title }) => [id, title]),
    ).toEqual([
      [ids[1], ''],
      [ids[2], ''],
      [ids[1], 'edited'],
    ]);
  });

  test('from the id of a bookmark, prints new bookmarks and then changes, nothing twice', async () => {
    const { run, user } = await openShell();
    const ids: number[] = [];
    for (const n of [1, 2])
      ids.push((await user.post('/bookmarks/add', { url: `https://example.org/${n}` })).body.id);
    const controller = new AbortController();
    const { notifier } = service.context.coordination;
    const before = notifier.held;
    const running = run(['sync', '--follow', '--cursor', String(ids[0]), '--json'], {
      signal: controller.signal,
      onOutput: (out) => out.includes('deleted') && controller.abort(),
    });
    await expect.poll(() => notifier.held).toBe(before + 1);
    await user.post('/bookmarks/delete', { id: ids[0] });
    const lines = readLines((await running).out);
    expect(lines).toMatchObject([{ id: ids[1] }, { deleted: ids[0] }]);
    expect(lines).toHaveLength(2);
  });
});

describe('mirror', () => {
  test('copies the account into a file, and updates it', async () => {
    const { run, user, all, env } = await openShell();
    const file = join(env.XDG_CONFIG_HOME, 'bookmarks.sqlite');
    const { body: made } = await user.post('/bookmarks/add', {
      url: 'https://example.org/1',
      tags: ['b', 'a'],
    });
    expect(JSON.parse((await run(['mirror', file, '--json'])).out)).toEqual({
      bookmarks: 1,
      changed: 1,
      removed: 0,
      reset: true,
    });
    await user.post('/bookmarks/delete', { id: made.id });
    await user.post('/bookmarks/add', { url: 'https://example.org/2' });
    const onScreen = await run(['mirror', file], { screen: 80 });
    expect(onScreen.out).toBe('1 bookmark: 1 new or changed, 1 removed\n');
    // The command deletes the progress line before it prints the result, so that the two never share a line of the
    // terminal.
    expect(onScreen.err.endsWith('\r\u001b[2K')).toBe(true);
    using store = new SqliteStore(file);
    expect([...store.bookmarks()]).toEqual(await all());
  });

  test('refuses a file that is not a mirror, and says what to do', async () => {
    const { run, env } = await openShell();
    const file = join(env.XDG_CONFIG_HOME, 'notes.txt');
    writeFileSync(file, 'these are my notes, and no mirror; '.repeat(100));
    const { code, err } = await run(['mirror', file]);
    expect(code).toBe(2);
    expect(err).toMatch(/is not a local copy[\s\S]*Name a new file/);
    expect(readFileSync(file, 'utf8')).toContain('these are my notes');
  });
});

describe('a fault', () => {
  const readOnly = async (user: TestUser) => ({
    BOOKMARKS_URL: service.origin,
    BOOKMARKS_TOKEN: await service.token(user.id, 'read'),
    XDG_CONFIG_HOME: makeHome(),
  });

  test('is reported with what happened and what to do', async () => {
    const { run, env, user } = await openShell();
    const cases: [string[], Record<string, string>, string, string][] = [
      [
        ['list'],
        { ...env, BOOKMARKS_TOKEN: 'bka_1_wrong' },
        'the access token is missing',
        'The token comes from BOOKMARKS_TOKEN',
      ],
      [
        ['add', '--no-fetch', 'https://example.org/'],
        await readOnly(user),
        'scope read',
        'Set BOOKMARKS_TOKEN to a token that is allowed to do this',
      ],
      [['add', 'no-url'], env, 'url: expected an absolute url', ''],
      [['rm', '999999999'], env, 'does not exist', ''],
      [['edit', '1'], env, 'no changes were given', '--title'],
      [['import', '/no/such/file'], env, '/no/such/file: no such file', ''],
      [['import', SAMPLES], env, 'it is a folder', ''],
    ];
    for (const [args, environment, message, advice] of cases) {
      const { code, err, out } = await run(args, { env: environment });
      expect(err).toContain(message);
      expect(err).toContain(advice);
      expect([code > 0, out]).toEqual([true, '']);
    }
  });

  test('is reported as one JSON object for scripts', async () => {
    const { run } = await openShell();
    const { code, err } = await run(['edit', '999999999', '--title', 'x', '--json']);
    expect(code).toBe(3);
    expect(JSON.parse(err)).toMatchObject({ code: 'NOT_FOUND', status: 404, error: expect.any(String) });
  });

  test("an invalid argument is reported with the command's usage", async () => {
    const { run } = await openShell();
    for (const [args, message] of [
      [['rm', 'abc'], 'expected an integer of at least 1'],
      [['search', '--per-page', '101'], 'expected an integer from 1 to 100'],
      [['export', '--format', 'opml'], 'Allowed choices are json, html, csv'],
      [['nonsense'], "unknown command 'nonsense'"],
      [['add'], "missing required argument 'url'"],
    ] as const) {
      const { code, err } = await run([...args]);
      expect(err).toContain(message);
      expect(code).toBe(2);
    }
    expect((await run(['--help'])).out).toContain('import [options] <file>');
    expect((await run(['import', '--help'])).out).toContain('at most 100,000 bookmarks');
  });
});

describe('text that a service sends', () => {
  /**
   * Starts a server that sends this body, as a faulty or hostile service might. Returns the environment variables that
   * make the command line use this server.
   */
  async function openHostileService(status: number, body: object): Promise<Record<string, string>> {
    const server = createServer((_, response) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
    ).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      BOOKMARKS_URL: `http://127.0.0.1:${port}`,
      BOOKMARKS_TOKEN: 'bks_1_a',
      XDG_CONFIG_HOME: makeHome(),
    };
  }

  const HOSTILE = 'a\u001b[2Jb\u009b31mc\u202ed\u2066e\u0007';
  const DANGEROUS =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters
    /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|\u001b\[2J/;
  const bookmark = {
    id: 1,
    url: `javascript:alert("${HOSTILE}")`,
    title: HOSTILE,
    comment: HOSTILE,
    tags: [{ id: 1, name: HOSTILE }],
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  };

  test.each([[['list']], [['list', '--json']], [['search', '--json', 'x']], [['whoami']], [['export']]])(
    'cannot control the terminal through %j',
    async (args) => {
      const page = { bookmarks: [bookmark], total: 1, has_more: false, last_cursor: 1, email: HOSTILE };
      const env = await openHostileService(200, page);
      const { out, err } = await runCommand(args, { env, screen: 80 });
      expect(out).not.toBe('');
      expect(out + err).not.toMatch(DANGEROUS);
    },
  );

  test.each([[['list']], [['list', '--json']]])(
    'cannot control the terminal through an error message, with %j',
    async (args) => {
      const env = await openHostileService(400, { error: HOSTILE, code: 'VALIDATION_ERROR' });
      const { code, err } = await runCommand(args, { env, screen: 80 });
      expect([code, err.includes('[2J')]).toEqual([2, true]);
      expect(err).not.toMatch(DANGEROUS);
    },
  );

  test('reaches other programs unchanged; JSON on a terminal escapes it without changing its meaning', async () => {
    const env = await openHostileService(200, { bookmarks: [bookmark], has_more: false });
    const piped = await runCommand(['list', '--json'], { env });
    const shown = await runCommand(['list', '--json'], { env, screen: 80 });
    expect(JSON.parse(piped.out).bookmarks[0].title).toBe(HOSTILE);
    expect(JSON.parse(shown.out)).toEqual(JSON.parse(piped.out));
  });

  test('becomes a link of an HTML export only if it is http or https; the export reports how many bookmarks it left out', async () => {
    const kept = { ...bookmark, url: 'https://example.org/', title: 'kept' };
    const env = await openHostileService(200, { bookmarks: [bookmark, kept], has_more: false });
    const { out, err } = await runCommand(['export', '--format', 'html'], { env });
    expect(out).toContain('HREF="https://example.org/"');
    expect(out).not.toContain('javascript');
    expect(err).toBe('left out because their urls are not http or https: 1\n');
  });
});

describe('as a process', () => {
  const start = (args: string[], env: Record<string, string>) =>
    spawn(process.execPath, [MAIN, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });

  test('Ctrl-C ends it with exit code 130, and it ends quietly if its reader stops reading', async () => {
    const { env, user } = await openShell();
    await user.post('/import', {
      bookmarks: Array.from({ length: 3_000 }, (_, i) => ({
        url: `https://example.org/${i}`,
        title: 'x'.repeat(500),
      })),
    });
    const following = start(['sync', '--follow', '--new'], env);
    const { notifier } = service.context.coordination;
    await expect.poll(() => notifier.held).toBe(1);
    following.kill('SIGINT');
    expect(await once(following, 'exit')).toEqual([130, null]);

    const listing = start(['list'], env);
    await once(listing.stdout, 'readable');
    listing.stdout.destroy();
    const [errors, [code]] = await Promise.all([text(listing.stderr), once(listing, 'exit')]);
    expect([code, errors]).toEqual([0, '']);
  });

  test.skipIf(!existsSync('/dev/full'))(
    'an error is printed that says why the output cannot be written',
    async () => {
      const { env } = await openShell();
      const full = openSync('/dev/full', 'w');
      const child = spawn(process.execPath, [MAIN, 'whoami'], {
        env: { ...process.env, ...env },
        stdio: ['ignore', full, 'pipe'],
      });
      closeSync(full);
      const [errors, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
      expect([code, errors]).toEqual([1, 'bookmarks: standard output: write: the disk is full\n']);
    },
  );
});

describe("the user's own tokens and sessions", () => {
  const openSessionShell = async () => openShell(await service.session());

  test('a token can be created, listed and revoked', async () => {
    const { user, run } = await openSessionShell();
    const made = await run(['tokens', 'create', 'My script', '--scope', 'write', '--days', 'never']);
    expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^bka_\d+_[\w-]{43}\n$/) });
    const token = made.out.trim();
    expect((await service.post('/account/get', {}, { token })).body.scope).toBe('write');
    const { tokens } = JSON.parse((await run(['--json', 'tokens'])).out);
    expect(tokens).toMatchObject([{ name: 'My script', scope: 'write', expires_at: null }]);
    const { out } = await run(['tokens', 'list']);
    expect(out.trim().split('\t')).toEqual([
      String(tokens[0].id),
      token.slice(-4),
      tokens[0].created_at.slice(0, 10),
      'not yet',
      'never',
      'write',
      'My script',
    ]);
    expect(out).not.toContain(token);
    expect((await run(['tokens', 'revoke', String(tokens[0].id)])).out).toBe(
      `Revoked token ${tokens[0].id}\n`,
    );
    expect((await service.post('/user/profile', {}, { token })).status).toBe(401);
    expect(await run(['tokens', 'revoke', String(tokens[0].id)])).toMatchObject({
      code: 3,
      err: expect.stringContaining('the token does not exist'),
    });
    expect((await user.post('/tokens/list')).body.tokens).toEqual([]);
  });

  test('sessions can be listed and ended', async () => {
    const { user, run } = await openSessionShell();
    const other = await service.session(user.email);
    const { out } = await run(['sessions']);
    expect(out.trim().split('\n')).toHaveLength(2);
    expect(out).toContain('Node.js (this one)');
    expect((await run(['sessions', 'revoke-others'])).out).toBe('Sessions ended: 1\n');
    expect((await other.post('/user/profile')).status).toBe(401);
    const { sessions } = JSON.parse((await run(['--json', 'sessions'])).out);
    expect((await run(['sessions', 'revoke', String(sessions[0].id)])).code).toBe(0);
    expect((await run(['sessions'])).code).toBe(4);
  });

  test('an API token may not manage any of them, and the error says so', async () => {
    const { run } = await openShell();
    for (const args of [['tokens'], ['tokens', 'create', 'n'], ['sessions'], ['sessions', 'revoke-others']])
      expect(await run(args), args.join(' ')).toMatchObject({
        code: 4,
        err: expect.stringContaining('this needs a session, not an API token'),
      });
  });

  test.each(['0', '366', '1.5', 'x', ''])('--days %s is refused', async (days) => {
    const { run } = await openSessionShell();
    const { code, err } = await run(['tokens', 'create', 'n', '--days', days]);
    expect([code, err]).toEqual([2, expect.stringContaining('expected an integer from 1 to 365, or never')]);
  });

  test('login --paste also accepts an API token, without showing it', async () => {
    const user = await service.user();
    const env = { BOOKMARKS_URL: service.origin, XDG_CONFIG_HOME: makeHome() };
    const paste = (input: string, args: string[] = []) =>
      runCommand(['login', '--paste', ...args], { env, input: `${input}\n`, screen: 80 });
    const done = await paste(user.token);
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining(`Logged in as ${user.email}`) });
    expect(done.out + done.err).not.toContain(user.token);
    expect((await runCommand(['whoami'], { env })).out).toContain(user.email);
    for (const wrong of ['ABCD1234', (await service.session()).token, 'bka_x', ''])
      expect(await paste(wrong)).toMatchObject({
        code: 2,
        err: expect.stringContaining('this is not an API token'),
      });
    expect((await paste('', [user.token])).err).toContain('leave the token out of the command');
  });
});
