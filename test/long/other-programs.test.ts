import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { ImportEntry } from '../../src/domain/resources.ts';
import { joinFolders } from '../../src/formats/folders.ts';
import { readBookmarkFile } from '../../src/formats/read-file.ts';
import { importIntoChromium, whyNotChromium } from '../support/chromium-import.ts';
import { runCommand } from '../support/cli.ts';
import { type Firefox, startFirefox } from '../support/firefox.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { type Place, readPlaces, sortPlaces } from '../support/places.ts';
import { findProgram, type Program } from '../support/programs.ts';
import { useService } from '../support/service.ts';

/**
 * Exchanges bookmarks with other programs. The service imports the programs' files, and the programs import the
 * service's exports.
 */

const service = useService({ freeBookmarkLimit: 100_000 });
const folder = makeFolder('other-programs');
afterAll(() => removeFolder(folder));

/** Defines a test that is skipped if a program is missing. The test's name starts with the program's name. */
const testWith = (
  program: Program,
  name: string,
  work: (path: string, skip: (note: string) => never) => Promise<void>,
): void =>
  test(`${program}: ${name}`, async ({ skip }) => {
    const path = findProgram(program);
    if (path === undefined) return skip(`${program} is not installed`);
    await work(path, skip);
  });

/** Returns a function that runs the command line with a new account. Every command must succeed. */
async function openShell() {
  const { token } = await service.user();
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: token, XDG_CONFIG_HOME: folder };
  return async (...args: string[]) => {
    const run = await runCommand(args, { env });
    expect(run).toMatchObject({ code: 0, err: '' });
    return run.out;
  };
}

const read = (file: string) => readBookmarkFile(readFileSync(file), { foldersAsTags: true });

/** Returns entries in a form that can be compared: by url, with sorted tags, and with times in whole seconds. */
const essence = (entries: readonly ImportEntry[]) =>
  entries
    .map((entry) => ({
      ...entry,
      tags: [...(entry.tags ?? [])].sort(),
      created_at: entry.created_at?.slice(0, 19),
      updated_at: entry.updated_at?.slice(0, 19),
    }))
    .sort((one, other) => (one.url < other.url ? -1 : 1));

/** Names with characters that have a special meaning in some formats. */
const NAMES = [
  'Work',
  'C/C++',
  'back\\slash',
  'R&D <b>',
  '"quoted"',
  "it's",
  '日本語',
  'Größe 🗾',
  'a, b',
  '&amp;',
  'Databases',
  'toolbar',
  '#1 [x]',
  'deep',
];
const TAGS = ['reading', 'to do', 'Über', '日本', 'a&b', '"q"', '<i>', 'x|y', '[z]', 'c#', "l'été", '1'];

/**
 * Makes a collection with nested folders. Every top-level folder contains another folder, except the folders whose
 * names begin with `flat`.
 */
function makeCollection(count: number): Place[] {
  const nested = Array.from({ length: 150 }, (_, i) => [
    `${NAMES[i % NAMES.length]} ${i % 30}`,
    ...Array.from({ length: 1 + (i % 5) }, (__, depth) => NAMES[(i * 7 + depth * 3) % NAMES.length]!),
  ]);
  const paths = [[], ...nested, ...nested.map((path) => path.slice(0, 1)), ['flat one'], ['flat/two']];
  const titles = ['', ' & <b>"quoted"</b>', ' – naïve 日本語 🗾', ` ${'long '.repeat(400)}end`];
  return Array.from({ length: count }, (_, i): Place[] => {
    const place = {
      path: paths[i % paths.length]!,
      title: i % 50 === 0 ? '' : `Page ${i}${titles[i % 7] ?? ''}`,
      url: `https://site-${i % 97}.example/${i}?a=1&b=%C3%A9&lt=2#part-${i}`,
      tags: TAGS.filter((__, tag) => (i + tag) % 5 === 0 && i % 3 > 0).sort(),
      added: 1_000_000_000 + i * 100_003,
      modified: 1_600_000_000 + i * 10_007,
    };
    const other = paths[(i * 13 + 1) % paths.length]!;
    return i % 20 === 0 && `${other}` !== `${place.path}` ? [place, { ...place, path: other }] : [place];
  })
    .flat()
    .slice(0, count);
}

const isFlat = (path: string[]) => path[0]?.startsWith('flat ') === true;

/**
 * Returns the expected collection after an import and an export. A top-level folder without subfolders becomes a tag,
 * unless the folder's name contains `/`. If a bookmark was both in a folder and outside all folders, the result has it
 * only in the folder.
 */
function expectAfter(before: Place[], tagFolders: boolean): Place[] {
  const places = [...Map.groupBy(before, ({ url }) => url).values()].flatMap((locations) => {
    const paths = locations.map(({ path }) => path);
    const tags = [...locations[0]!.tags, ...paths.filter(isFlat).flat()];
    const folders = [
      ...paths.filter((path) => path.length > 0 && !isFlat(path)),
      ...(tagFolders ? tags.map((tag) => [tag]) : []),
    ];
    return (folders.length > 0 ? folders : [[]]).map((path) => ({
      ...locations[0]!,
      path,
      tags: tags.sort(),
    }));
  });
  return sortPlaces(places);
}

/** Starts Firefox with a profile, does the work, and quits Firefox. */
async function withFirefox(
  program: string,
  profile: string,
  work: (firefox: Firefox) => Promise<unknown>,
): Promise<Place[]> {
  mkdirSync(profile, { recursive: true });
  const firefox = await startFirefox(program, profile);
  onTestFinished(() => firefox.kill());
  await work(firefox);
  await firefox.quit();
  return readPlaces(profile);
}

/** A script that stores a collection in Firefox. Each top-level folder goes below one of Firefox's own folders. */
const FILL = `
  const { bookmarks } = load('PlacesUtils');
  const roots = [bookmarks.menuGuid, bookmarks.toolbarGuid, bookmarks.unfiledGuid];
  const trees = roots.map((guid) => ({ guid, children: [] }));
  const folders = new Map();
  const open = (path) => {
    const key = JSON.stringify(path);
    if (!folders.has(key)) {
      const made = { type: bookmarks.TYPE_FOLDER, title: path.at(-1), children: [] };
      const parent = path.length > 1 ? open(path.slice(0, -1)) : trees[folders.size % 3];
      parent.children.push(made);
      folders.set(key, made);
    }
    return folders.get(key);
  };
  for (const { path, title, url, tags, added, modified } of args[0]) {
    const times = { dateAdded: new Date(added * 1000 + 123), lastModified: new Date(modified * 1000 + 456) };
    const parent = path.length > 0 ? open(path) : trees[added % 3];
    parent.children.push({ title, url, ...(tags.length > 0 && { tags }), ...times });
  }
  trees[0].children.push(
    { type: bookmarks.TYPE_SEPARATOR },
    { title: 'A bookmarklet', url: 'javascript:alert(1)' },
    { title: 'A search', url: 'place:sort=8' },
  );
  for (const tree of trees) await bookmarks.insertTree(tree);`;

const EXPORT_HTML = `await load('BookmarkHTMLUtils').exportToFile(args[0]);`;
const IMPORT_HTML = `await load('BookmarkHTMLUtils').importFromFile(args[0], { replace: false });`;

testWith(
  'firefox',
  'a nested profile comes back as it was, except for what docs/formats.md names',
  async (program) => {
    const at = (name: string) => join(folder, `firefox-${name}`);
    const filled = await withFirefox(program, at('one'), async (firefox) => {
      await firefox.run(FILL, makeCollection(5_000));
      await firefox.run(EXPORT_HTML, at('own.html'));
      await firefox.run(`await load('BookmarkJSONUtils').exportToFile(args[0]);`, at('own.json'));
    });
    const before = filled.filter(({ url }) => url.startsWith('https:'));
    expect(before).toHaveLength(5_000);

    const [html, json] = [read(at('own.html')), read(at('own.json'))];
    expect([html.format, json.format]).toEqual(['netscape', 'firefox']);
    expect(essence(json.entries)).toEqual(essence(html.entries));
    expect(html.refusals).toEqual([]);
    for (const { leftOut } of [html, json])
      expect(leftOut.map(({ title }) => title).sort()).toEqual(['A bookmarklet', 'A search']);

    const cli = await openShell();
    await cli('import', at('own.html'));
    await cli('export', at('ours.html'));
    await cli('export', '--tag-folders', at('folders.html'));

    const again = async (name: string) =>
      await withFirefox(program, at(`${name}-again`), (firefox) =>
        firefox.run(IMPORT_HTML, at(`${name}.html`)),
      );
    expect(await again('ours')).toEqual(expectAfter(before, false));
    expect(await again('folders')).toEqual(expectAfter(before, true));
  },
);

/** Returns a collection as an account stores it, with comments. Each url occurs once, and folders are tags. */
const toEntries = (places: Place[]) =>
  [...Map.groupBy(places, ({ url }) => url).values()].map((locations, index) => {
    const { url, title, tags, added, modified } = locations[0]!;
    const paths = locations.map(({ path }) => path).filter(({ length }) => length > 0);
    return {
      url,
      title,
      comment: index % 3 === 0 ? `A comment & <more> ${index}\nin two lines` : '',
      tags: [...new Set([...paths.map(joinFolders), ...tags])],
      created_at: new Date(added * 1_000).toISOString(),
      updated_at: new Date(modified * 1_000).toISOString(),
    };
  });

/** Imports entries into a new account and exports them as HTML. Returns the file. */
async function exportAsHtml(name: string, entries: ImportEntry[], ...options: string[]): Promise<string> {
  const cli = await openShell();
  const [own, html] = [join(folder, `${name}.json`), join(folder, `${name}.html`)];
  writeFileSync(own, JSON.stringify({ bookmarks: entries }));
  await cli('import', own);
  await cli('export', ...options, html);
  return html;
}

const byUrl = <T extends { url: string }>(entries: T[]) =>
  entries.toSorted((one, other) => (one.url < other.url ? -1 : 1));

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#10': '\n' };
const decode = (html: string) => html.replace(/&([^;]*);/g, (_, name) => ENTITIES[name]!);

testWith('buku', 'imports what is exported here, and what it writes is imported here', async (program) => {
  // buku has no folders, so this collection has none. buku stores tags in lower case.
  const given = toEntries(makeCollection(300).map((place) => ({ ...place, path: [] })));
  const at = (name: string) => join(folder, `buku-${name}`);
  const buku = (...args: string[]) =>
    promisify(execFile)(program, ['--nostdin', '--tacit', '--nc', '--db', at('database.db'), ...args], {
      env: { PATH: process.env.PATH, HOME: folder, PYTHONWARNINGS: 'ignore' },
    });
  await buku('--import', await exportAsHtml('to-buku', given));
  const expected = byUrl(given).map(({ url, title, comment, tags }) => ({
    url,
    title,
    comment,
    tags: tags.map((tag) => tag.toLowerCase()).sort(),
  }));
  const readBack = (name: string) =>
    byUrl(read(at(name)).entries).map(({ url, title, comment, tags }) => ({
      url,
      title,
      comment,
      tags: tags!.toSorted(),
    }));

  await buku('--print', '--json', at('own.json'));
  expect(read(at('own.json')).format).toBe('buku');
  expect(readBack('own.json')).toEqual(expected);

  // buku does not escape the text that it writes into HTML. So texts with `<`, `&` or `"` are not compared.
  await buku('--export', at('own.html'));
  const isPlain = ({ title, comment, tags }: (typeof expected)[number]) =>
    !/[&<"]/.test(title + comment + tags.join());
  const plain = new Set(expected.filter(isPlain).map(({ url }) => url));
  expect(plain.size).toBeGreaterThan(50);
  const back = readBack('own.html');
  expect(back.map(({ url }) => url)).toEqual(expected.map(({ url }) => url));
  expect(back.filter(({ url }) => plain.has(url))).toEqual(expected.filter(isPlain));
});

/** A script that prints the bookmarks that Shaarli's parser reads. Other services in PHP use the same parser. */
const SHAARLI = `
  if (!(@include 'Shaarli/NetscapeBookmarkParser/autoload.php')) exit('missing');
  $parser = new Shaarli\\NetscapeBookmarkParser\\NetscapeBookmarkParser(true, [], '0', $argv[2]);
  echo json_encode($parser->parseFile($argv[1]));`;

interface Link {
  uri: string;
  title: string;
  note: string;
  tags: string[];
  time: number;
}

testWith('php', "Shaarli's parser reads what is exported here", async (program, skip) => {
  const given = toEntries(makeCollection(300));
  const html = await exportAsHtml('to-shaarli', given);
  const { stdout } = await promisify(execFile)(program, ['-r', SHAARLI, html, folder], { maxBuffer: 1e8 });
  if (stdout === 'missing') return skip('php-netscape-bookmark-parser is not installed');
  const links = new Map(JSON.parse(stdout).map((link: Link) => [decode(link.uri), link])) as Map<
    string,
    Link
  >;
  expect([...links.keys()].sort()).toEqual(given.map(({ url }) => url).sort());
  for (const { url, title, comment, tags, created_at } of given) {
    const link = links.get(url)!;
    expect({ title: decode(link.title), note: decode(link.note), time: link.time }).toEqual({
      title,
      note: comment,
      time: Date.parse(created_at) / 1_000,
    });
    // Shaarli splits the names of folders into words. It also splits the tag of a bookmark with only one tag. So the
    // test compares only tags in `TAGS`, and only for bookmarks with several such tags.
    const plain = tags.filter((tag) => TAGS.includes(tag)).map((tag) => tag.toLowerCase());
    expect(link.tags.map((tag) => decode(tag).toLowerCase())).toEqual(
      expect.arrayContaining(plain.length > 1 ? plain : []),
    );
  }
});

testWith(
  'chromium',
  'imports what is exported here, and its file Bookmarks is imported here',
  async (program, skip) => {
    const reason = await whyNotChromium(program, folder);
    if (reason !== undefined) return skip(reason);
    const given = toEntries(makeCollection(1_000));
    given[5]!.title = 'A title\nin two lines';
    const html = await exportAsHtml('to-chromium', given, '--tag-folders');
    const file = await importIntoChromium(program, html, join(folder, 'chromium'));
    const made = read(file);
    expect(made.format).toBe('chrome');
    // Chromium stores neither comments nor the time of a change. It shows a line break in a title as `&#10;`.
    given[5]!.title = 'A title&#10;in two lines';
    expect(essence(made.entries)).toEqual(
      essence(given.map((entry) => ({ ...entry, comment: '', updated_at: undefined }))),
    );
  },
);
