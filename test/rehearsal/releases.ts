import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';

/**
 * The images of the rehearsal: folders with this project's code, each presenting itself as a release of its own. What is
 * installed first is the release before, by its commit; the later ones have this commit's code, and a schema that differs by a
 * numbered migration and a function's text.
 */

const PROJECT = resolve(import.meta.dirname, '../..');

/** Changes the files of a release; `folder` is the image's `/app`. */
type Change = (folder: string) => void;

/** The images that can be pulled, by tag: the folder that a container finds as `/app`. */
export type Images = ReadonlyMap<string, string>;

/** What of the project an image has. */
const FILES = ['src', 'sql', 'package.json'];

function makeImage(tag: string, change: Change = () => {}, commit?: string): [string, string] {
  const folder = makeFolder(`image-${tag}`, runDir());
  if (commit === undefined)
    for (const name of FILES) cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
  else unpack(commit, folder);
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'build.json'), JSON.stringify({ version: tag, revision: `of-${tag}` }));
  change(folder);
  return [tag, folder];
}

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: PROJECT, maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'ignore'] });

const unpack = (commit: string, folder: string): void =>
  void execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit, ...FILES) });

/** What an older release has to have in common with this one while none was published: schema, modules and their patches. */
const SHARED = ['sql', 'package-lock.json', 'src/store/patches'];

/**
 * The commit of the release before: the newest tag below this commit. Until there is a tag, tables and functions may be
 * changed in place, and it is the oldest commit since which nobody has. Undefined where the history is not there, or holds none.
 */
export function findReleaseBefore(): string | undefined {
  try {
    const read = (...args: string[]) =>
      git(...args)
        .toString()
        .trim();
    const tag = read('tag', '--list', 'v*', '--merged', 'HEAD~1', '--sort=-version:refname').split('\n')[0];
    if (tag) return tag;
    if (read('status', '--porcelain', '--', ...SHARED) !== '') return undefined;
    const commit = read('log', '-1', '--format=%H', '--', ...SHARED);
    return commit === '' || commit === read('rev-parse', 'HEAD') ? undefined : commit;
  } catch {
    return undefined;
  }
}

const countMigrations = (folder: string): number =>
  readdirSync(join(folder, 'sql')).filter((name) => name.endsWith('.sql')).length;

/** Adds a migration that the code before it works with: an expansion. */
function addMigration(folder: string, name: string, text: string): void {
  const before = countMigrations(folder);
  const file = `${String(before + 1).padStart(4, '0')}-${name}.sql`;
  writeFileSync(join(folder, 'sql', file), `-- works-with: ${before}\n${text}\n`);
}

/** Replaces a text of a file; throws where it is not there, as the rehearsal would then show nothing. */
export function editFile(file: string, from: string | RegExp, to: string): void {
  const text = readFileSync(file, 'utf8');
  const edited = text.replace(from, to);
  if (edited === text) throw new Error(`${file} does not hold ${from}`);
  writeFileSync(file, edited);
}

/** A column that rows get as they are written, and a function that writes it: the old code must live with both. */
function expand(folder: string): void {
  addMigration(folder, 'adds-seen', 'alter table accounts add column adds_seen bigint not null default 0;');
  editFile(
    join(folder, 'sql/functions/add-bookmark.sql'),
    /(update accounts set bookmark_count = bookmark_count \+ 1)\b/,
    '$1, adds_seen = adds_seen + 1',
  );
}

/** Fails after it has changed a table, so that something has to be taken back. */
function failToMigrate(folder: string): void {
  const text = 'alter table bookmarks add column half_done integer;\nselect 1 / 0;';
  addMigration(folder, 'half-done', text);
}

/** What is installed, what it is upgraded to, and a release between them whose migration fails. */
export const TAGS = { first: '1.0.0', broken: '1.0.1', second: '1.1.0' } as const;

/** Makes the images of all releases; `before` is the commit of the first one, this commit where there is none. */
export const makeImages = (before: string | undefined): Images =>
  new Map([
    makeImage(TAGS.first, () => {}, before),
    makeImage(TAGS.broken, failToMigrate),
    makeImage(TAGS.second, expand),
  ]);

/** The number of migrations that a release brings. */
export const schemaOf = (images: Images, tag: string): number => countMigrations(images.get(tag)!);
