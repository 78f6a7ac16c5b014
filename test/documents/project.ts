import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Command } from 'commander';
import { parseAllDocuments } from 'yaml';
import { addAdminCommands } from '../../src/admin/commands.ts';
import { readConfig } from '../../src/config.ts';
import { type Markdown, parseMarkdown } from './markdown.ts';
import { testNamesIn } from './test-names.ts';

/** Reads the project's files. The documents are checked against them. */

const ROOT = join(import.meta.dirname, '../..');

/** Folders whose files are not part of the project, because tools create them. */
const FOREIGN = new Set(['node_modules', '.git', '.data', 'dist']);

const HAS_TEXT = /\.(ts|mjs|sh|sql|lua|ya?ml|json|ini|env)$|^\.ci\/run$|^Dockerfile$/;

function listFiles(folder = ''): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (FOREIGN.has(entry.name)) return [];
    return entry.isDirectory() ? listFiles(path) : [path];
  });
}

export const FILES = new Set(listFiles());
export const FILE_NAMES = new Set([...FILES].map((file) => basename(file)));
export const FOLDERS = new Set(
  [...FILES].flatMap((file) => file.split('/').map((_, n, parts) => parts.slice(0, n).join('/'))),
);

export const readText = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/**
 * By path: the text of each file of code or configuration, except package-lock.json, samples, and the files that only
 * check documents.
 */
export const CODE = new Map(
  [...FILES]
    .filter(
      (file) =>
        HAS_TEXT.test(file) && file !== 'package-lock.json' && !/^test\/(samples|documents)/.test(file),
    )
    .map((file) => [file, readText(file)]),
);

const wordsIn = (texts: Iterable<string>): Set<string> =>
  new Set([...texts].flatMap((text) => text.split(/[^\w]+/)));

export const WORDS = wordsIn(CODE.values());

/** Returns every variable that the service reads. */
export function listVariables(): Set<string> {
  const names = new Set<string>();
  readConfig(new Proxy({}, { get: (_, name) => void names.add(String(name)) }));
  return names;
}

/** By path of a test file: the names of its groups and tests. */
export const TEST_NAMES = new Map(
  [...CODE]
    .filter(([file]) => file.endsWith('.test.ts'))
    .map(([file, text]) => [file, testNamesIn(text)] as const),
);

/** Returns the operator's commands, such as `user create`, with their options. */
export function listAdminCommands(): Map<string, Set<string>> {
  const admin = new Command('admin');
  addAdminCommands(admin, { readConfig, out: () => undefined, err: () => {} });
  return new Map(
    admin.commands.flatMap((group) =>
      group.commands.map((command) => [
        `${group.name()} ${command.name()}`,
        new Set(command.options.map(({ long }) => long!)),
      ]),
    ),
  );
}

/** Returns each object of the manifests, such as `deployment/api`. */
export function listManifestObjects(): Set<string> {
  const texts = [...CODE].filter(([file]) => /^k8s\/.*\.yaml$/.test(file)).map(([, text]) => text);
  const objects = texts.flatMap((text) =>
    [...parseAllDocuments(text)].map((document) => document.toJS({ maxAliasCount: -1 })),
  );
  return new Set(
    objects
      .filter((object) => object?.kind && object.metadata?.name)
      .map(({ kind, metadata }) => `${String(kind).toLowerCase()}/${metadata.name}`),
  );
}

/** Returns every document of the project. */
export const readDocuments = (): Markdown[] =>
  [...FILES].filter((file) => file.endsWith('.md')).map((file) => parseMarkdown(file, readText(file)));
