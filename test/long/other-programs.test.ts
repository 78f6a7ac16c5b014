import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { ImportEntry } from '../../src/domain/resources.ts';
import { readBookmarkFile } from '../../src/formats/read-file.ts';
import { runCommand } from '../support/cli.ts';
import { type Firefox, startFirefox } from '../support/firefox.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { type Place, readPlaces, sortPlaces } from '../support/places.ts';
import { findProgram, type Program } from '../support/programs.ts';
import { useService } from '../support/service.ts';

/** Bookmarks go through other programs: what those write is imported here, and what is exported here they import. */

const service = useService({ freeBookmarkLimit: 100_000 });
const folder = makeFolder('other-programs');
afterAll(() => removeFolder(folder));

/** A test that is skipped where a program is missing; its name says which one. */
const testWith = (program: Program, name: string, work: (path: string) => Promise<void>): void =>
  test(`${program}: ${name}`, { timeout: 300_000 }, async ({ skip }) => {
    const path = findProgram(program);
    if (path === undefined) return skip(`${program} is not installed`);
    await work(path);
  });

/** An account at a shell. Every command must succeed. */
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

/** Entries by their urls, with sorted tags, and times in whole seconds. */
const essence = (entries: readonly ImportEntry[]) =>
  entries
    .map((entry) => ({
      ...entry,
      tags: [...(entry.tags ?? [])].sort(),
      created_at: entry.created_at?.slice(0, 19),
      updated_at: entry.updated_at?.slice(0, 19),
    }))
    .sort((one, other) => (one.url < other.url ? -1 : 1));

/** Names that a writer or a reader may take for something else. */
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

/** A nested collection. No folder at the top is without one inside, but those that begin with `flat`. */
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
 * What a collection is after it went through the service. A folder at the top without another one inside is the same as a
 * tag. What is in a folder and beside all folders is then in the folder alone.
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

/** Runs Firefox with a profile until the work is done, and has it quit. */
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

/** Puts a collection into Firefox, each folder at the top below another one of the folders that Firefox made. */
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
