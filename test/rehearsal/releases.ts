import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';

/**
 * Makes the rehearsal's images. Each image is a folder with the project's code and its own version number. The first
 * image is the previous release. The second and the third image each have this commit's code and an additional
 * migration. The migration of the second image fails. The third image also has a changed function.
 */

const PROJECT = resolve(import.meta.dirname, '../..');

/** A function that changes the files of a release. `folder` is the image's `/app`. */
type Change = (folder: string) => void;

/** Maps the tag of an image to the folder that is the image's `/app`. */
export type Images = ReadonlyMap<string, string>;

/** The files of the project that an image contains. */
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

/**
 * The schema, the modules, and the patches of the modules. Before the first release, an older commit can serve as the
 * previous release only if these files are the same as in this commit.
 */
const SHARED = ['sql', 'package-lock.json', 'src/store/patches'];

/**
 * Finds the commit of the previous release: the tag of the newest version before this commit. Before the first release
 * there is no tag, and tables and functions may be changed in place. In that case, the result is the commit that last
 * changed the schema, the modules or their patches. Returns undefined if that commit is the current one, if these files
 * have uncommitted changes, or if git's history is missing.
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

/** Adds a migration with which the previous code still works. */
function addMigration(folder: string, name: string, text: string): void {
  const before = countMigrations(folder);
  const file = `${String(before + 1).padStart(4, '0')}-${name}.sql`;
  writeFileSync(join(folder, 'sql', file), `-- works-with: ${before}\n${text}\n`);
}

/** Replaces text in a file. Throws if the text is missing, because a rehearsal without the change proves nothing. */
export function editFile(file: string, from: string | RegExp, to: string): void {
  const text = readFileSync(file, 'utf8');
  const edited = text.replace(from, to);
  if (edited === text) throw new Error(`${file} does not hold ${from}`);
  writeFileSync(file, edited);
}

/**
 * Adds a column with a default, and changes a function so that it writes the column. The old code must work with both.
 */
function expand(folder: string): void {
  addMigration(folder, 'adds-seen', 'alter table accounts add column adds_seen bigint not null default 0;');
  editFile(
    join(folder, 'sql/functions/add-bookmark.sql'),
    /(update accounts set bookmark_count = bookmark_count \+ 1)\b/,
    '$1, adds_seen = adds_seen + 1',
  );
}

/** Adds a migration that fails after changing a table, so that the change must be rolled back. */
function failToMigrate(folder: string): void {
  const text = 'alter table bookmarks add column half_done integer;\nselect 1 / 0;';
  addMigration(folder, 'half-done', text);
}

/** The tags of the releases: the one that is installed first, one whose migration fails, and the newest one. */
export const TAGS = { first: '1.0.0', broken: '1.0.1', second: '1.1.0' } as const;

/**
 * Creates the images of all releases. `before` is the commit of the first image. By default, the first image is from
 * this commit too.
 */
export const makeImages = (before: string | undefined): Images =>
  new Map([
    makeImage(TAGS.first, () => {}, before),
    makeImage(TAGS.broken, failToMigrate),
    makeImage(TAGS.second, expand),
  ]);

/** Returns the number of migrations in a release. */
export const schemaOf = (images: Images, tag: string): number => countMigrations(images.get(tag)!);
