import { runCommand } from '../support/cli.ts';
import type { Markdown } from './markdown.ts';
import { listAdminCommands, listManifestObjects, readText } from './project.ts';
import { listDifferences } from './tables.ts';

/** Checks that each command in the documents exists in the project or in its manifests. */

/** Scripts that npm runs by itself. */
const LIFECYCLE = new Set(['prepare', 'prepack', 'postpack']);

/** The npm commands in the documents that npm itself defines, so they are not in `package.json`. */
const OF_NPM = new Set(['ci', 'pack', 'run']);

/** Returns every command of a document: each line of a code block, and each code span. */
export function commandsIn({ blocks, fences }: Markdown): string[] {
  const inFences = fences
    .filter(({ language }) => language !== 'ts' && language !== 'sql')
    .flatMap(({ text }) => text.replaceAll('\\\n', ' ').split(/\n|&&/));
  return [...inFences, ...blocks.flatMap(({ spans }) => spans)].map((command) => command.trim());
}

/** Finds scripts of `package.json` that no document names, and scripts in the documents that `package.json` lacks. */
export function findScriptFaults(documents: readonly Markdown[]): string[] {
  const named = documents.flatMap(commandsIn).flatMap((command) => {
    const [, script, short] = /^(?:\w+=\S+ )*npm (?:run (?:--silent )?([\w:]+)|(\w+))/.exec(command) ?? [];
    return script ?? short ?? [];
  });
  const scripts = Object.keys(JSON.parse(readText('package.json')).scripts);
  return listDifferences(
    'npm scripts',
    named.filter((name) => !OF_NPM.has(name)),
    scripts.filter((name) => !LIFECYCLE.has(name)),
  );
}

/**
 * Returns the arguments after the program in a command line, or undefined if the command line starts another program.
 */
function argumentsOf(command: string, program: RegExp): string[] | undefined {
  const start = program.exec(command)?.[0];
  return start === undefined ? undefined : command.slice(start.length).trim().split(/\s+/);
}

const optionsIn = (args: readonly string[]): string[] => args.filter((word) => /^--\w/.test(word));

const ADMIN = /^(npm run --silent admin -- |admin |.*node src\/main\.ts admin )/;

/** Finds the operator's commands and options that the documents mention but that do not exist. */
export function findAdminFaults(documents: readonly Markdown[]): string[] {
  const known = listAdminCommands();
  return documents.flatMap((document) =>
    commandsIn(document).flatMap((command) => {
      const args = argumentsOf(command, ADMIN);
      if (args === undefined || ['…', ''].includes(args[0]!)) return [];
      const options = known.get(args.slice(0, 2).join(' '));
      if (options === undefined) return [`${document.path}: no command ${command}`];
      return optionsIn(args)
        .filter((option) => !options.has(option))
        .map((option) => `${document.path}: ${command} has no ${option}`);
    }),
  );
}

const CLI = /^npm run --silent cli -- /;

/** Finds commands and options of the CLI that the documents mention but that the CLI's help does not list. */
export async function findCliFaults(documents: readonly Markdown[]): Promise<string[]> {
  const faults: string[] = [];
  for (const document of documents) {
    for (const command of commandsIn(document)) {
      const args = argumentsOf(command, CLI);
      const name = args?.find((word, n) => !word.startsWith('-') && args[n - 1] !== '--url');
      if (args === undefined || name === undefined) continue;
      const { code, out } = await runCommand([name, '--help']);
      if (code !== 0 || !out.includes(`bookmarks ${name}`))
        faults.push(`${document.path}: no command ${command}`);
      for (const option of optionsIn(args)) {
        if (!out.includes(option)) faults.push(`${document.path}: ${command} has no ${option}`);
      }
    }
  }
  return faults;
}

/** Finds objects that kubectl commands in the documents name but that the manifests do not have. */
export function findManifestFaults(documents: readonly Markdown[]): string[] {
  const known = listManifestObjects();
  return documents.flatMap((document) =>
    commandsIn(document)
      .filter((command) => command.startsWith('kubectl'))
      .flatMap((command) => [...command.matchAll(/\b(deploy|deployment|job|service)\/([\w-]+)/g)])
      .map(([, kind, name]) => `${kind === 'deploy' ? 'deployment' : kind}/${name}`)
      // The manifests do not have the Job `backup-now`, because a command in the document creates it.
      .filter((object) => !known.has(object) && object !== 'job/backup-now')
      .map((object) => `${document.path}: no object ${object}`),
  );
}
