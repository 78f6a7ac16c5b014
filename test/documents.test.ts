import { describe, expect, test } from 'vitest';
import {
  findAdminFaults,
  findCliFaults,
  findManifestFaults,
  findScriptFaults,
} from './documents/commands.ts';
import type { Markdown } from './documents/markdown.ts';
import { readDocuments } from './documents/project.ts';
import {
  findBrokenLinks,
  findMissingFiles,
  findMissingTests,
  findUnknownMetrics,
  findUnknownNames,
  findUnknownWireNames,
} from './documents/references.ts';
import {
  findAdminTableFaults,
  findConfigurationFaults,
  findContractEndpointFaults,
  findEndpointFaults,
  findErrorFaults,
  findLengthFaults,
  findMetricTableFaults,
} from './documents/tables.ts';
import { testNamesIn } from './documents/test-names.ts';

/** Checks that the documents name only things that exist, and that they describe everything that exists. */

const DOCUMENTS = readDocuments();

type Check = (documents: readonly Markdown[]) => string[] | Promise<string[]>;

/** Applies a check only to documents that describe the present. Decision records may also name what was removed. */
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

const CHECKS: Record<string, Check> = {
  'links and anchors exist': findBrokenLinks,
  'named files and folders exist': inEach(findMissingFiles),
  'named tests exist': inEach(findMissingTests),
  'named variables and error codes exist': inEach(findUnknownNames),
  'named paths, headers and options exist': inEach(findUnknownWireNames),
  'named metrics exist': inEach(findUnknownMetrics),
  'npm scripts exist and are documented': inPresent(findScriptFaults),
  'commands of the operator exist': inPresent(findAdminFaults),
  'commands of the command line exist': inPresent(findCliFaults),
  'named objects of the manifests exist': inPresent(findManifestFaults),
  'the configuration tables are complete and correct': inOne(CONFIGURATION, findConfigurationFaults),
  'the API at a glance lists every endpoint': inOne(CONTRACT, findEndpointFaults),
  'the README is short': inOne(README, findLengthFaults),
  'the contract describes every endpoint': inOne(CONTRACT, findContractEndpointFaults),
  'the contract lists every error code': inOne(CONTRACT, findErrorFaults),
  'the table of the operator lists every command': inOne(OPERATION, findAdminTableFaults),
  'the table of metrics is complete': inOne('docs/observability.md', findMetricTableFaults),
};

describe('the documents are true', () => {
  test.each(Object.entries(CHECKS))('%s', async (_, check) => {
    expect(await check(DOCUMENTS)).toEqual([]);
  });
});

test('a document may not name a test that is skipped or belongs to a skipped group', () => {
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
