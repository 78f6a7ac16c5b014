import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
// biome-ignore lint/style/noRestrictedImports: finds the files of packages that the page uses
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parentPort } from 'node:worker_threads';
import { brotliCompress, constants, gzip } from 'node:zlib';

/**
 * Makes the files of the page from their sources, without a build step. This module strips the types and compresses
 * each file. It puts all files into one folder, which is named after a hash of their contents. It runs as a worker
 * thread and posts one `Assets` to the thread that started it.
 */

/** A file in its encodings. */
export interface Asset {
  type: string;
  raw: Uint8Array;
  gzip: Uint8Array;
  br: Uint8Array;
}

/** All files of the page. */
export interface Assets {
  /** A hash of all contents. It names the folder below `/assets/`. */
  hash: string;
  /** The files, keyed by their paths below that folder. */
  files: Map<string, Asset>;
  /** For each page, the paths of the modules that the page loads immediately. The page's own module comes first. */
  modules: Map<string, string[]>;
}

/** A source file: the text to send, and the files that this file refers to. */
interface Module {
  text: string;
  /** Files that are imported statically. */
  imports: string[];
  /** Files that are imported dynamically or started as a worker. */
  later: string[];
}

const SOURCES = fileURLToPath(new URL('../../', import.meta.url));

/** The pages. The module of the page `save` is `web/save-page.ts`, for example. */
const PAGES = ['bookmarks', 'settings', 'save'] as const;

/** Files that are sent without changes, by path below `src/`. */
const PLAIN = ['web/styles.css', 'web/icon.svg'];

const TYPE_BY_EXTENSION: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Matches `} from '…'`, `import '…'`, `import('…')` and `new URL('…', import.meta.url)`, in the forms that this
 * repository and its packages use. The groups are the text before the quote, the quote, and the name of the module.
 */
const REFERENCE =
  /((?<=[}\w*]\s*)\bfrom\s*|^import\s*|\bimport\(\s*|\bnew URL\(\s*(?=['"][^'"]+['"], import\.meta\.url))(['"])([@\w./-]+)\2/gm;

/** Returns the path at which a source file is served, for example `web/list.js` or `lib/entities/dist/decode.js`. */
function addressOf(file: string): string {
  const packages = `${sep}node_modules${sep}`;
  const index = file.lastIndexOf(packages);
  const isInPackage = index >= 0;
  const path = isInPackage ? join('lib', file.slice(index + packages.length)) : relative(SOURCES, file);
  return path.split(sep).join('/').replace(/\.ts$/, '.js');
}

/** Returns the file of a module that the file `from` imports by this name. */
function resolveModule(name: string, from: string): string {
  if (name.startsWith('.')) return join(dirname(from), name);
  return createRequire(from).resolve(name);
}

/** Returns the address of the file `to` relative to the file `from`, as browsers resolve imports. */
function relativeAddress(from: string, to: string): string {
  const path = relative(dirname(addressOf(from)), addressOf(to))
    .split(sep)
    .join('/');
  return path.startsWith('.') ? path : `./${path}`;
}

/** Matches comments on lines of their own, and trailing spaces, which remain where types were stripped. */
const COMMENT_OR_SPACES = /^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)[ \t]*$|[ \t]+$/gm;

/** Removes comments but keeps the line breaks, so that line numbers in errors match the source. */
const removeComments = (code: string): string =>
  code.replace(COMMENT_OR_SPACES, (comment) => '\n'.repeat(comment.split('\n').length - 1));

/** Reads a module, strips its types, and replaces the names of imported modules with relative addresses. */
function readModule(file: string): Module {
  const source = readFileSync(file, 'utf8');
  const code = file.endsWith('.ts') ? removeComments(stripTypeScriptTypes(source)) : source;
  const module: Module = { text: '', imports: [], later: [] };
  module.text = code.replace(REFERENCE, (_whole, before: string, quote: string, name: string) => {
    const target = resolveModule(name, file);
    // Only `import(` and `new URL(` have a parenthesis. They load the module later.
    const isLater = before.includes('(');
    (isLater ? module.later : module.imports).push(target);
    return `${before}${quote}${relativeAddress(file, target)}${quote}`;
  });
  return module;
}

/** Reads the entries and all modules that they import, directly or indirectly. */
function readModules(entries: readonly string[]): Map<string, Module> {
  const modules = new Map<string, Module>();
  const visit = (file: string) => {
    if (modules.has(file)) return;
    const module = readModule(file);
    modules.set(file, module);
    for (const next of [...module.imports, ...module.later]) visit(next);
  };
  for (const entry of entries) visit(entry);
  return modules;
}

/**
 * Returns the paths of the modules that a page loads immediately: its own module, and all static imports, direct and
 * indirect.
 */
function listLoadedAtOnce(modules: ReadonlyMap<string, Module>, entry: string): string[] {
  const reached = new Set([entry]);
  // This loop also visits the files that it adds to the set.
  for (const file of reached) for (const next of modules.get(file)?.imports ?? []) reached.add(next);
  return [...reached].map(addressOf);
}

/** Returns an entry of `Assets.files`: the path, and the file in its encodings. */
async function compress(path: string, text: string): Promise<[string, Asset]> {
  const raw = Buffer.from(text);
  // Level 11 would take ten times as long and save hardly any bytes.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length };
  const [gzipped, br] = await Promise.all([
    promisify(gzip)(raw, { level: 9 }),
    promisify(brotliCompress)(raw, { params }),
  ]);
  return [path, { type: TYPE_BY_EXTENSION[extname(path)] ?? 'text/plain', raw, gzip: gzipped, br }];
}

async function buildAssets(): Promise<Assets> {
  const entryOf = (page: string) => join(SOURCES, 'web', `${page}-page.ts`);
  const modules = readModules(PAGES.map(entryOf));
  const texts = new Map([...modules].map(([file, { text }]) => [addressOf(file), text]));
  for (const path of PLAIN) texts.set(path, readFileSync(join(SOURCES, path), 'utf8'));
  const hash = createHash('sha256');
  for (const [path, text] of [...texts].sort()) hash.update(`${path}\0${text}\0`);
  return {
    hash: hash.digest('hex').slice(0, 16),
    files: new Map(await Promise.all([...texts].map(([path, text]) => compress(path, text)))),
    modules: new Map(PAGES.map((page) => [page, listLoadedAtOnce(modules, entryOf(page))])),
  };
}

parentPort?.postMessage(await buildAssets());
