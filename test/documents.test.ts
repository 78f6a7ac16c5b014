import { describe, expect, test } from 'vitest';
import {
  findAdminFaults,
  findCliFaults,
  findManifestFaults,
  findScriptFaults,
  findUnrehearsedCommands,
} from './documents/commands.ts';
import type { Markdown } from './documents/markdown.ts';
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
  findAdminTableFaults,
  findBoundFaults,
  findConfigurationFaults,
  findContractEndpointFaults,
  findDecisionFaults,
  findEndpointFaults,
  findErrorFaults,
  findFunctionMapFaults,
  findLayerFaults,
  findLengthFaults,
  findMetricTableFaults,
} from './documents/tables.ts';
import { testNamesIn } from './documents/test-names.ts';

/** The documents name only what exists, and describe everything that exists. */

const DOCUMENTS = readDocuments();

type Check = (documents: readonly Markdown[]) => string[] | Promise<string[]>;

/** Checks the documents that describe the present. Decision records also name what was removed. */
const inPresent =
  (check: Check): Check =>
  (documents) =>
    check(documents.filter(({ path }) => !path.startsWith('docs/decisions/')));

const inEach = (find: (document: Markdown) => string[]): Check =>
  inPresent((documents) => documents.flatMap(find));

const inOne =
  (path: string, find: (document: Markdown) => string[]): Check =>
  (documents) =>
    find(documents.find((document) => document.path === path)!);

const README = 'README.md';
const CONFIGURATION = 'docs/configuration.md';
const CONTRACT = 'docs/contract.md';
const OPERATION = 'docs/operation.md';
const RUNBOOK = 'docs/runbook.md';
const DESIGN = 'docs/design.md';
const CONTRIBUTING = 'CONTRIBUTING.md';

const CHECKS: Record<string, Check> = {
  'links and anchors': findBrokenLinks,
  'files and folders': inEach(findMissingFiles),
  tests: inEach(findMissingTests),
  'names of code': inEach(findUnknownNames),
  'paths, headers and options': inEach(findUnknownWireNames),
  metrics: inEach(findUnknownMetrics),
  // In other folders, the other files show the purpose of a file.
  'names beside files': (documents) =>
    documents.filter(({ path }) => [DESIGN, CONTRIBUTING].includes(path)).flatMap(findNamesElsewhere),
  'npm scripts': inPresent(findScriptFaults),
  'commands of the operator': inPresent(findAdminFaults),
  'commands of the command line': inPresent(findCliFaults),
  'objects of the manifests': inPresent(findManifestFaults),
  'the configuration tables': inOne(CONFIGURATION, findConfigurationFaults),
  'the API at a glance': inOne(README, findEndpointFaults),
  'the length of the README': inOne(README, findLengthFaults),
  'endpoints of the contract': inOne(CONTRACT, findContractEndpointFaults),
  'errors of the contract': inOne(CONTRACT, findErrorFaults),
  'bounds of the contract': inOne(CONTRACT, findBoundFaults),
  'decisions and their tests': inOne(CONTRACT, findDecisionFaults),
  'sections and decisions that are cited': (documents) =>
    findUnknownCitations(documents, documents.find(({ path }) => path === CONTRACT)!),
  'documents that code names': findUnknownDocuments,
  'commands of the operator, in their table': inOne(OPERATION, findAdminTableFaults),
  'the table of metrics': inOne('docs/observability.md', findMetricTableFaults),
  'commands that the rehearsal runs': (documents) =>
    findUnrehearsedCommands(documents.filter(({ path }) => [OPERATION, RUNBOOK].includes(path))),
  'layers of the design': inOne(DESIGN, findLayerFaults),
  'the map of the SQL functions': inOne('sql/functions/README.md', findFunctionMapFaults),
};

describe('the documents are true', () => {
  test.each(Object.entries(CHECKS))('%s', async (_, check) => {
    expect(await check(DOCUMENTS)).toEqual([]);
  });
});

test('a test that is skipped, or in a skipped group, is no test that a document may name', () => {
  const text = [
    "describe('a group', () => {",
    "  test('runs', () => {});",
    "  test.skip('skipped alone', () => {});",
    "  describe.skip('a skipped group', () => {",
    "    test('skipped with its group', () => {",
    '    });',
    '  });',
    "  describe.skip.each([1])('a skipped table', () => {",
    "    test('skipped with its table', () => {});",
    '  });',
    "  test('runs too', () => {});",
    '});',
  ];
  expect([...testNamesIn(text.join('\n'))]).toEqual(['a group', 'runs', 'runs too']);
});
