import { dirname, join } from 'node:path';
import { BASE_PATH, WEB, WEB_API } from '../../src/http/mount.ts';
import { METRIC_NAMES } from '../../src/observability/metrics.ts';
import { browserRoutes } from '../../src/routes/account.ts';
import { ROUTES } from '../../src/routes/app.ts';
import { appWebRoutes } from '../../src/routes/apps.ts';
import { deviceRoutes } from '../../src/routes/device-codes.ts';
import { passkeyRoutes } from '../../src/routes/passkeys.ts';
import { type Block, codeIn, type Markdown } from './markdown.ts';
import { CODE, FILE_NAMES, FILES, FOLDERS, TEST_NAMES, WORDS } from './project.ts';

/** Checks that everything that a document mentions exists. Each check returns what does not exist. */

/** Files that commands in the documents create, and a placeholder for a file name. */
const MADE_BY_COMMANDS = new Set([
  'NNNN-name.sql',
  'secrets.yaml',
  'sign-in.yaml',
  'sbom.json',
  'session.ts',
  'bookmarks.json',
]);

const FILE_NAME = /^[\w.-]+\.(ts|mjs|sql|lua|yaml|json|ini|env|md)$/;

const TOP_FOLDERS = /^(src|test|sql|docs|k8s|\.ci)\//;

/** Pages of the service that people open in a browser while signing in. */
const PAGE_PATHS = ['/login', '/login/callback', '/login/app'];

/** Paths that are not endpoints. */
const OTHER_PATHS = new Set([
  ...[
    '/',
    '/settings',
    '/save',
    '/livez',
    '/readyz',
    '/metrics',
    '/docs',
    '/openapi.json',
    '/mcp',
    BASE_PATH,
  ],
  ...[
    `${WEB.basePath}/`,
    WEB_API.basePath,
    ...[...browserRoutes, ...appWebRoutes, ...deviceRoutes, ...passkeyRoutes].map(
      ({ path }) => WEB.basePath + path,
    ),
    ...PAGE_PATHS,
  ],
]);

const pathsOf = new Set([...ROUTES.map(({ path }) => path), ...OTHER_PATHS]);

const at = ({ path }: Markdown, { line }: Block): string => `${path}:${line}`;

/** Yields each code span with the file and line where it is. */
function* eachSpan(document: Markdown): Generator<[span: string, where: string]> {
  for (const block of document.blocks) for (const span of block.spans) yield [span, at(document, block)];
}

/** Finds relative links to files or anchors that do not exist. */
export function findBrokenLinks(documents: readonly Markdown[]): string[] {
  const byPath = new Map(documents.map((document) => [document.path, document]));
  return documents.flatMap((document) =>
    document.links.flatMap((link) => {
      const [target = '', anchor] = link.split('#');
      const path = target === '' ? document.path : join(dirname(document.path), target).replace(/\/$/, '');
      if (!FILES.has(path) && !FOLDERS.has(path)) return [`${document.path}: no file ${link}`];
      const isThere = anchor === undefined || byPath.get(path)?.anchors.has(anchor);
      return isThere ? [] : [`${document.path}: no heading ${link}`];
    }),
  );
}

const isPath = (word: string): boolean => FILES.has(word) || FOLDERS.has(word.replace(/\/$/, ''));

/** Files that operators create and that git ignores. */
const MADE_BY_OPERATORS = /^k8s\/overlays\/\w+\/secrets\.yaml$/;

/** Finds files and folders that code spans and commands name but that do not exist. */
export function findMissingFiles(document: Markdown): string[] {
  const inCommands = document.fences.flatMap(({ text }) =>
    text.split(/[\s'"=]+/).map((word) => [word, document.path] as const),
  );
  const inSpans = [...eachSpan(document)].flatMap(([span, where]) =>
    span
      .split(' › ')[0]!
      .split(/[\s'"=]+/)
      .map((word) => [word, where] as const),
  );
  return [...inSpans, ...inCommands].flatMap(([given, where]) => {
    const word = given.replace(/^\.\//, '').replace(/[;,]$/, '');
    if (TOP_FOLDERS.test(word))
      return isPath(word) || MADE_BY_OPERATORS.test(word) ? [] : [`${where}: no file ${word}`];
    if (!FILE_NAME.test(word) || MADE_BY_COMMANDS.has(word)) return [];
    return FILE_NAMES.has(word) ? [] : [`${where}: no file ${word}`];
  });
}

/** Finds tests, written as `file › name`, that do not exist. */
export function findMissingTests(document: Markdown): string[] {
  return [...eachSpan(document)].flatMap(([span, where]) => {
    const [file, name, ...rest] = span.split(' › ');
    if (name === undefined) return [];
    const names = TEST_NAMES.get(`test/${file}`);
    return rest.length === 0 && names?.has(name) ? [] : [`${where}: no test ${span}`];
  });
}

/** Finds variables and error codes that no file of code or configuration contains. */
export function findUnknownNames(document: Markdown): string[] {
  const assigned = new Set(
    document.fences.flatMap(({ text }) => [...text.matchAll(/^(\w+)=/gm)].map(([, name]) => name)),
  );
  return [...eachSpan(document)].flatMap(([span, where]) => {
    const name = /^[A-Z][A-Z0-9_]+$/.exec(span)?.[0];
    if (name === undefined || WORDS.has(name) || assigned.has(name)) return [];
    return [`${where}: nothing is named ${name}`];
  });
}

const HEADER = /^[A-Z][a-z]+(-[A-Z][A-Za-z]*)+$|^X-[\w-]+$/;

const ALL_CODE = [...CODE.values()].join('\n').toLowerCase();

/** Finds endpoints, headers and options that do not exist. */
export function findUnknownWireNames(document: Markdown): string[] {
  return [...eachSpan(document)].flatMap(([span, where]) => {
    // docs/linkding.md names paths of another service's API.
    if (document.path === 'docs/linkding.md') return [];
    if (/^\/[\w/.-]+$/.test(span)) return pathsOf.has(span) ? [] : [`${where}: no path ${span}`];
    const options = [...span.replace('--silent', '').matchAll(/(?<=^| )--([a-z][\w-]+)/g)].map(
      ([option]) => option,
    );
    const header = span.split(':')[0]!;
    const words = HEADER.test(header) ? [header, ...options] : options;
    // The options of other programs are not checked.
    if (/^(kubectl|docker)/.test(span)) return [];
    return words
      .filter((word) => !ALL_CODE.includes(word.toLowerCase()))
      .map((word) => `${where}: nothing knows ${word}`);
  });
}

const SERIES = /^bookmarks_[a-z_]+$/;

/** Finds metrics that do not exist. The series of a histogram have the histogram's name and a suffix. */
export function findUnknownMetrics(document: Markdown): string[] {
  const roles = CODE.get('k8s/database/administrator.sql')!.matchAll(/create role (\w+)/g);
  const known = new Set<string>([...METRIC_NAMES, ...[...roles].map(([, role]) => role!)]);
  return [...eachSpan(document)]
    .filter(([span]) => SERIES.test(span) && span !== 'bookmarks_import')
    .filter(([span]) => !known.has(span.replace(/_(bucket|sum|count)$/, '')))
    .map(([span, where]) => `${where}: no metric ${span}`);
}

/** Returns the code spans in a cell. */
export const spansIn = (cell: string | undefined): string[] => codeIn(cell ?? '');
