import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Bookmark, BookmarkClient, IndexedDbStore } from '../../src/client/index.ts';
import { leanManifest, putLeanManifest, putWholeManifest } from '../../src/packing/manifest.ts';
import { browserTest, useBrowser } from '../support/browser.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { installPackage, runIn } from '../support/package.ts';
import { usePageServer } from '../support/pages.ts';
import { startService, useService } from '../support/service.ts';

/** Tests the tarball of `npm pack`. The tarball is installed into an empty project, without network access. */

const ROOT = join(import.meta.dirname, '../..');

let folder: string;
let project: string;
const service = useService();
const browsers = useBrowser();

/** Serves the files of the installed package unchanged. */
const pages = usePageServer(async ({ url }, response) => {
  const file = join(project, 'node_modules/bookmark-service', url!);
  response.setHeader('content-type', 'text/javascript').end(readFileSync(file));
});

const exec = (command: string, args: string[], cwd: string) => runIn(folder, command, args, cwd);

beforeAll(async () => {
  folder = makeFolder('package');
  project = await installPackage(folder);
});
afterAll(() => removeFolder(folder));

describe('the tarball', () => {
  const installed = () => join(project, 'node_modules/bookmark-service');

  test('is plain JavaScript with declarations, and no source', () => {
    const files = readdirSync(join(installed(), 'dist'), { recursive: true, encoding: 'utf8' });
    expect(files).toContain('client/index.js');
    expect(files).toContain('client/index.d.ts');
    expect(files.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([]);
    const top = readdirSync(installed()).filter((name) => !['README.md', 'LICENSE'].includes(name));
    expect(top.sort()).toEqual(['dist', 'node_modules', 'package.json']);
  });

  test('has a README and a manual of its own, and lets bundlers leave out what is unused', () => {
    const manifest = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ type: 'module', sideEffects: false, man: './dist/bookmarks.1' });
    expect(manifest).not.toHaveProperty('private');
    expect(readFileSync(join(installed(), 'README.md'), 'utf8')).toContain('## Sync');
    expect(readFileSync(join(installed(), 'dist/bookmarks.1'), 'utf8')).toContain('.SH EXIT STATUS');
  });

  test('is as small in a bundle as its README says', async () => {
    const entry = join(project, 'bundle-entry.js');
    writeFileSync(
      entry,
      "import { BookmarkClient } from 'bookmark-service/client';\nglobalThis.c = BookmarkClient;\n",
    );
    const bundle = await rolldown({ input: entry, platform: 'browser', cwd: project });
    const { output } = await bundle.generate({ minify: true });
    await bundle.close();
    expect(output).toHaveLength(1);
    const [, stated] = /minified, takes (\d+) kB/.exec(readFileSync(join(installed(), 'README.md'), 'utf8'))!;
    expect(Math.ceil(Buffer.byteLength(output[0].code) / 1_000)).toBeLessThanOrEqual(Number(stated));
  });

  test('contains the parsers of the command line and nothing of the service', () => {
    const brought = readdirSync(join(installed(), 'node_modules')).filter((name) => !name.startsWith('.'));
    expect(brought).toEqual(expect.arrayContaining(['commander', 'entities']));
    expect(brought.length).toBeLessThan(10);
    expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'bookmark-service',
    ]);
    const { scripts, dependencies } = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8'));
    expect(scripts).toBeUndefined();
    expect(Object.keys(dependencies)).toEqual(['commander', 'entities']);
  });

  test('contains a client that talks to a service', async () => {
    const user = await service.user();
    const program = `
      import { ApiError, BookmarkClient } from 'bookmark-service/client';
      const [baseUrl, token] = process.argv.slice(2);
      const client = new BookmarkClient({ baseUrl, token });
      const added = await client.addBookmark({ url: 'https://example.org/packed', tags: ['from npm'] });
      const { value } = await client.sync().next();
      const fault = await client.deleteBookmark(900_000_000).catch((error) => error);
      console.log(JSON.stringify([added.url, value.cursor === String(added.id), fault instanceof ApiError, fault.code]));
    `;
    writeFileSync(join(project, 'program.js'), program);
    const { stdout } = await exec('node', ['program.js', `${service.origin}/api/v1`, user.token], project);
    expect(JSON.parse(stdout)).toEqual(['https://example.org/packed', true, true, 'NOT_FOUND']);
  });

  test('importing the client loads only itself and files of the domain that import no package', async () => {
    const program = `
      import { registerHooks } from 'node:module';
      const loaded = [];
      registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
      await import('bookmark-service/client');
      console.log(JSON.stringify(loaded.filter((url) => !/\\/dist\\/(client\\/|domain\\/(bookmark-fields|bounds|request-kinds|text|thrown|timestamp|waits|web-url)\\.js)/.test(url))));
    `;
    writeFileSync(join(project, 'loaded.js'), program);
    expect(JSON.parse((await exec('node', ['loaded.js'], project)).stdout)).toEqual([]);
  });

  browserTest('the client in it runs in a page of another origin, without a bundler', async () => {
    // The operator must allow the origins of pages, as docs/contract.md says.
    await using service = await startService({ corsOrigins: [pages.origin] });
    const user = await service.user();
    await user.post('/bookmarks/add', { url: 'http://there/' });
    const page = await (await browsers.visitor(service)).open('/', pages.origin);
    const shown = await page.evaluate(
      async ([baseUrl, token, module]) => {
        const client: {
          BookmarkClient: typeof BookmarkClient;
          IndexedDbStore: typeof IndexedDbStore;
        } = await import(module!);
        const collection = new client.BookmarkClient({ baseUrl: baseUrl!, token }).collection(
          new client.IndexedDbStore('bookmarks'),
        );
        await collection.add({ url: 'http://page/', tags: ['plain'] });
        const reports = await collection.sync();
        return { reports, bookmarks: (await collection.list()) as Bookmark[] };
      },
      [`${service.origin}/api/v1`, user.token, '/dist/client/index.js'],
    );
    const { bookmarks } = (await user.post('/bookmarks/list')).body;
    expect(shown).toEqual({ reports: [], bookmarks });
    expect(bookmarks.map(({ url }: Bookmark) => url)).toEqual(['http://there/', 'http://page/']);
  });

  test('contains types that check strict programs against the API, in Node and in browsers', async () => {
    const program = (error: boolean) => `
      import { BookmarkClient, type Bookmark, type SyncBatch } from 'bookmark-service/client';
      const client = new BookmarkClient({ baseUrl: 'https://example.org/api/v1', fetch: globalThis.fetch });
      const added: Bookmark = await client.addBookmark({ url: 'https://example.org/', title: undefined });
      for await (const batch of client.sync({ signal: AbortSignal.timeout(1) }) satisfies AsyncIterable<SyncBatch>) {
        const cursor: string = batch.cursor;
        console.log(cursor, added.tags[0]?.name);
      }
      ${error ? 'await client.addBookmark({ uri: "https://example.org/" });' : ''}
    `;
    const check = (file: string, ...options: string[]) =>
      exec(
        'tsc',
        [
          ...'--noEmit --strict --exactOptionalPropertyTypes --ignoreConfig --target es2022'.split(' '),
          ...options,
          file,
        ],
        project,
      );
    writeFileSync(join(project, 'right.ts'), program(false));
    writeFileSync(join(project, 'wrong.ts'), program(true));
    await check('right.ts', '--module', 'nodenext', '--lib', 'es2022,dom');
    await check('right.ts', '--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2022,dom');
    await expect(check('wrong.ts', '--module', 'nodenext', '--lib', 'es2022,dom')).rejects.toMatchObject({
      stdout: expect.stringContaining("'uri' does not exist"),
    });
  });

  test('runs the command line by its own name and by the name of the package', async () => {
    const user = await service.user();
    const file = join(ROOT, 'test/samples/chrome.html');
    await exec('npx', ['--no', 'bookmarks', 'login', user.token, '--url', service.origin], project);
    const { stdout } = await exec('npx', ['--no', 'bookmark-service', 'import', file], project);
    expect(stdout).toContain('Imported 5 bookmarks');
    const csv = join(ROOT, 'test/samples/raindrop.csv');
    expect((await exec('npx', ['--no', 'bookmarks', 'import', csv], project)).stdout).toContain('Imported 3');
    expect((await exec('npx', ['--no', 'bookmarks', 'tags'], project)).stdout).toContain('\tDevelopment\n');
  });
});

test('the client compiles with only the types that browsers have', async () => {
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: { types: [], lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'] },
    include: [],
    files: [join(ROOT, 'src/client/index.ts')],
  };
  writeFileSync(join(folder, 'browser.json'), JSON.stringify(config));
  await exec('tsc', ['--noEmit', '--project', join(folder, 'browser.json')], folder);
});

describe('packing', () => {
  const whole = {
    name: 'n',
    private: true,
    scripts: { a: 'b' },
    dependencies: { commander: '1.0.0', fastify: '2.0.0' },
  };

  test('leaves out the dependencies and scripts of the service', () => {
    const lean = leanManifest(whole);
    expect(lean).toMatchObject({ name: 'n', dependencies: { commander: '1.0.0' } });
    expect(Object.keys(lean)).not.toEqual(expect.arrayContaining(['scripts']));
    expect(Object.keys(lean.dependencies as object)).not.toContain('fastify');
  });

  test('restores the whole manifest, even after an interrupted run', () => {
    const place = join(folder, 'manifest');
    mkdirSync(place);
    const path = join(place, 'package.json');
    const text = `${JSON.stringify(whole)}\n`;
    writeFileSync(path, text);
    putLeanManifest(place);
    expect(readFileSync(path, 'utf8')).not.toBe(text);
    putLeanManifest(place);
    putWholeManifest(place);
    putWholeManifest(place);
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readdirSync(place)).toEqual(['package.json']);
  });

  test('leaves the folder as it was', () => {
    const packed = join(folder, 'source/package.json');
    expect(readFileSync(packed, 'utf8')).toBe(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  });
});
