import { describe, expect, test } from 'vitest';
import {
  findAdminFaults,
  findCliFaults,
  findManifestFaults,
  findScriptFaults,
  findUnplayedCommands,
} from './documents/commands.ts';
import { type Markdown, parseMarkdown } from './documents/markdown.ts';
import { readDocuments } from './documents/project.ts';
import {
  findBrokenLinks,
  findMissingFiles,
  findMissingTests,
  findNamesElsewhere,
  findUnknownCitations,
  findUnknownDocuments,
  findUnknownMetrics,
  findUnknownNames,
  findUnknownWireNames,
} from './documents/references.ts';
import {
  findBoundFaults,
  findConfigurationFaults,
  findContractEndpointFaults,
  findDecisionFaults,
  findEndpointFaults,
  findErrorFaults,
  findLengthFaults,
  findOperationFaults,
  findRoomFaults,
} from './documents/tables.ts';
import { testNamesIn } from './documents/test-names.ts';

/** The documents name what exists, and what exists stands in the documents. */

const DOCUMENTS = readDocuments();

type Check = (documents: readonly Markdown[]) => string[] | Promise<string[]>;

const inEach =
  (find: (document: Markdown) => string[]): Check =>
  (documents) =>
    documents.flatMap(find);

const inOne =
  (path: string, find: (document: Markdown) => string[]): Check =>
  (documents) =>
    find(documents.find((document) => document.path === path)!);

const README = 'README.md';
const CONTRACT = 'docs/contract.md';
const OPERATION = 'docs/operation.md';
const DESIGN = 'docs/design.md';
const CONTRIBUTING = 'CONTRIBUTING.md';

const CHECKS: Record<string, Check> = {
  'links and anchors': findBrokenLinks,
  'files and folders': inEach(findMissingFiles),
  tests: inEach(findMissingTests),
  'names of code': inEach(findUnknownNames),
  'paths, headers and options': inEach(findUnknownWireNames),
  metrics: inEach(findUnknownMetrics),
  // Elsewhere a file's neighbours are what it is for, not what it holds.
  'names beside files': (documents) =>
    documents.filter(({ path }) => [DESIGN, CONTRIBUTING].includes(path)).flatMap(findNamesElsewhere),
  'npm scripts': findScriptFaults,
  'commands of the operator': findAdminFaults,
  'commands of the command line': findCliFaults,
  'objects of the manifests': findManifestFaults,
  'the configuration table': inOne(README, findConfigurationFaults),
  'the API at a glance': inOne(README, findEndpointFaults),
  'the length of the README': inOne(README, findLengthFaults),
  'endpoints of the contract': inOne(CONTRACT, findContractEndpointFaults),
  'errors of the contract': inOne(CONTRACT, findErrorFaults),
  'bounds of the contract': inOne(CONTRACT, findBoundFaults),
  'decisions and their tests': inOne(CONTRACT, findDecisionFaults),
  'sections and decisions that are cited': (documents) =>
    findUnknownCitations(documents, documents.find(({ path }) => path === CONTRACT)!),
  'documents that code names': findUnknownDocuments,
  'metrics, alerts and commands of the operator': inOne(OPERATION, findOperationFaults),
  'commands that the play runs': inOne(OPERATION, findUnplayedCommands),
  'rooms of the design': inOne(DESIGN, findRoomFaults),
};

describe('the documents are true', () => {
  test.each(Object.entries(CHECKS))('%s', async (_, check) => {
    expect(await check(DOCUMENTS)).toEqual([]);
  });
});

/** The documents with a text in the place of another in one of them. */
function withChange(path: string, from: string | RegExp, to: string): Markdown[] {
  return DOCUMENTS.map((document) => {
    if (document.path !== path) return document;
    const text = document.text.replace(from, to);
    expect(text, `${path} holds ${from}`).not.toBe(document.text);
    return parseMarkdown(path, text);
  });
}

/** What may become of a document: the check that notices it, the document, what is replaced and by what. */
const CHANGES: [check: string, path: string, from: string | RegExp, to: string][] = [
  ['links and anchors', README, '](docs/scaling.md)', '](docs/scale.md)'],
  ['links and anchors', README, '#users-and-tokens', '#tokens-and-users'],
  ['files and folders', DESIGN, '`src/http/authentication.ts`', '`src/http/access.ts`'],
  ['files and folders', CONTRIBUTING, 'test/spec-4-3-tags.test.ts', 'test/spec-4-3-tag.test.ts'],
  ['tests', CONTRACT, '› the order of checks (decision 1)', '› the order of the checks (decision 1)'],
  ['names of code', DESIGN, '`BOUNDS`', '`LIMITS_OF_FIELDS`'],
  ['paths, headers and options', README, '`/openapi.json`', '`/openapi.yaml`'],
  ['paths, headers and options', CONTRACT, '`X-RateLimit-Reset`', '`X-RateLimit-Renew`'],
  ['paths, headers and options', CONTRIBUTING, '-- --quick', '-- --swift'],
  ['metrics', OPERATION, '`bookmarks_coordination_degraded` is 1', '`bookmarks_redis_away` is 1'],
  ['names beside files', DESIGN, '| `authenticate` |', '| `waitForPage` |'],
  ['npm scripts', CONTRIBUTING, '`npm run audit`', '`npm run audits`'],
  ['npm scripts', README, 'npm ci && npm start', 'npm ci && npm begin'],
  ['commands of the operator', README, 'admin -- invite create', 'admin -- invite make'],
  ['commands of the operator', README, '--scope read', '--rights read'],
  ['commands of the command line', README, 'cli -- search', 'cli -- find'],
  ['commands of the command line', README, '--dry-run', '--try'],
  ['objects of the manifests', OPERATION, 'restart deployment/api', 'restart deployment/apis'],
  ['the configuration table', README, /^\| `MAX_WAITERS`.*\n/m, ''],
  ['the configuration table', README, /^\| `MAX_WAITERS` \| 12,000/m, '| `MAX_WAITERS` | 10,000'],
  ['the configuration table', README, '1 to 3,650', '1 to 365'],
  ['the API at a glance', README, '`query`, `tag`', '`query`, `tags`'],
  ['the API at a glance', README, '| `/export` | read |', '| `/export` | write |'],
  ['the length of the README', README, '\n- **A rolling', `\n${'word\n'.repeat(6)}\n- **A rolling`],
  ['endpoints of the contract', CONTRACT, '**POST /logout** (read)', '**POST /logout** (write)'],
  ['errors of the contract', CONTRACT, '| `RATE_LIMITED` | 429 |', '| `RATE_LIMITED` | 503 |'],
  ['bounds of the contract', CONTRACT, '8,192 characters', '4,096 characters'],
  ['decisions and their tests', CONTRACT, /^\| 7 \|/m, '| 6 |'],
  ['decisions and their tests', CONTRACT, /^(\| 7 \|.*\|) `.*` \|$/m, '$1 |'],
  ['sections and decisions that are cited', CONTRACT, /^\| 7 \|.*\n/m, ''],
  ['sections and decisions that are cited', CONTRACT, '### 4.3 Tags', '### 4.5 Tags'],
  ['metrics, alerts and commands of the operator', OPERATION, /^### BookmarksDown\n/m, ''],
  ['metrics, alerts and commands of the operator', OPERATION, '`admin token revoke', '`admin token end'],
  [
    'commands that the play runs',
    OPERATION,
    'undo deployment/worker --to-revision=…',
    'undo deployment/worker --to-revision=2',
  ],
  ['rooms of the design', DESIGN, /^\| `src\/routes\/`.*\n/m, ''],
];

describe('what becomes of a document is noticed', () => {
  test.each(CHANGES)('%s, by %s', async (check, path, from, to) => {
    const before = new Set(await CHECKS[check]!(DOCUMENTS));
    const found = await CHECKS[check]!(withChange(path, from, to));
    expect(found.filter((fault) => !before.has(fault))).not.toEqual([]);
  });

  test('documents that code names: one that is gone', () => {
    const found = findUnknownDocuments(DOCUMENTS.filter(({ path }) => path !== OPERATION));
    expect(found).toContainEqual(expect.stringContaining(OPERATION));
  });

  test('every other check has a change that it notices', () => {
    const { 'documents that code names': _, ...others } = CHECKS;
    expect(new Set(CHANGES.map(([check]) => check))).toEqual(new Set(Object.keys(others)));
  });
});

describe('names of tests', () => {
  test('are read from every form of a call', () => {
    const text = `
      describe('a group', () => {
        test("double's", () => {});
        test.each([1, 2])('each %i', () => {});
        test.runIf(isRoot)(
          'where it can run', () => {});
        test.for<string>([['x']])(\`by a template\`, () => {});
        describe.each([{ a: 1 }])('groups $a', () => {});
      });`;
    expect([...testNamesIn(text)]).toEqual([
      'a group',
      "double's",
      'each %i',
      'where it can run',
      'by a template',
      'groups $a',
    ]);
  });

  test('are not those of tests that are skipped or commented out', () => {
    const text = `
      test.skip('skipped', () => {});
      test.todo('to do');
      // test('after slashes', () => {});
      /* test('in a block', () => {}); */
      test('kept', () => {});`;
    expect([...testNamesIn(text)]).toEqual(['kept']);
  });
});
