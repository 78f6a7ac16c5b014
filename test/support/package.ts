import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Packs the client and the command line as `npm pack` does, and installs the tarball without a network. */

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The files that packing needs, and the packages that it compiles against or bundles. */
const SOURCES = [
  'package.json',
  'README.md',
  'tsconfig.json',
  'tsconfig.build.json',
  ...['packing', 'client', 'cli', 'domain', 'formats', 'mcp'].map((name) => `src/${name}`),
];
const PACKAGES = ['@modelcontextprotocol/server', 'commander', 'entities', '@types/node', 'undici-types'];

/** Returns an environment for commands. It keeps npm offline, and lacks the settings of the npm that runs the tests. */
function environment(folder: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|NODE_OPTIONS|BOOKMARKS_|VITEST)/i.test(name),
  );
  return {
    ...Object.fromEntries(own),
    PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`,
    XDG_CONFIG_HOME: join(folder, 'config'),
    npm_config_cache: join(folder, 'cache'),
    npm_config_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
  };
}

/** Runs a program that keeps its settings and caches below `folder`. */
export const runIn = (folder: string, command: string, args: string[], cwd: string) =>
  run(command, args, { cwd, env: environment(folder) });

/** Copies a package with its dependencies from the repository's `node_modules`. */
function copyPackage(name: string, to: string): void {
  const from = join(ROOT, 'node_modules', name);
  if (existsSync(join(to, 'node_modules', name))) return;
  cpSync(from, join(to, 'node_modules', name), { recursive: true });
  const { dependencies = {} } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  for (const needed of Object.keys(dependencies)) copyPackage(needed, to);
}

/** Packs the package below `folder`, installs it in an empty project, and returns the project's folder. */
export async function installPackage(folder: string): Promise<string> {
  const source = join(folder, 'source');
  for (const path of SOURCES) cpSync(join(ROOT, path), join(source, path), { recursive: true });
  for (const name of PACKAGES) copyPackage(name, source);
  await runIn(folder, 'npm', ['pack', '--pack-destination', folder], source);
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));

  const project = join(folder, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"type":"module","private":true}\n');
  await runIn(folder, 'npm', ['install', join(folder, tarball!)], project);
  return project;
}
