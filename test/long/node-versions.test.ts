import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { installPackage } from '../support/package.ts';
import { installFromRegistry } from '../support/registry.ts';
import { useService } from '../support/service.ts';

/** Runs the packed client and command line on several versions of Node. The binaries of Node come from npm. */

const run = promisify(execFile);
const service = useService();

let folder: string;
let project: string;
beforeAll(async () => {
  folder = makeFolder('node-versions');
  project = await installPackage(folder);
});
afterAll(() => removeFolder(folder));

/** Installs this version of Node. Returns the path of its binary, or undefined if the registry cannot be reached. */
async function installNode(major: number): Promise<string | undefined> {
  const name = `node-${process.platform}-${process.arch}`;
  const prefix = join(folder, `node-${major}`);
  mkdirSync(prefix);
  const isInstalled = await installFromRegistry(['--no-save', '--prefix', prefix, `${name}@${major}`]);
  return isInstalled ? join(prefix, 'node_modules', name, 'bin/node') : undefined;
}

test.for([20, 22, 26])('the packed client and command line run on Node %i', async (major, { skip }) => {
  const node = await installNode(major);
  if (node === undefined) return skip('the package registry cannot be reached');
  expect((await run(node, ['--version'])).stdout).toMatch(new RegExp(`^v${major}\\.`));
  const { token } = await service.user();
  const env = {
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, `config-${major}`),
    BOOKMARKS_URL: service.origin,
    BOOKMARKS_TOKEN: token,
  };
  const cli = (...args: string[]) =>
    run(node, [join(project, 'node_modules/bookmark-service/dist/cli/main.js'), ...args], { env });
  expect((await cli('--help')).stdout).toContain('import [options] <file>');
  expect((await cli('add', 'https://example.org/', '--tag', 'one')).stdout).toMatch(/^Added /);
  const file = join(folder, `${major}.html`);
  await cli('export', file);
  expect((await cli('import', file, '--dry-run')).stdout).toContain('1 bookmark');
  const mirror = await cli('mirror', join(folder, `${major}.sqlite`)).catch((error) => error);
  if (major < 22) expect(mirror.stderr).toContain('needs Node 22.13 or newer');
  else expect(mirror.stdout).toContain('1 bookmark: 1 new or changed, 0 removed');

  const program = join(project, `program-${major}.js`);
  writeFileSync(
    program,
    `import { BookmarkClient, MemoryStore } from 'bookmark-service/client';
      const client = new BookmarkClient({ baseUrl: '${service.origin}/api/v1', token: '${token}' });
      const store = new MemoryStore();
      for await (const batch of client.mirror({ store, follow: false })) console.log(batch.isCaughtUp, store.size);`,
  );
  expect((await run(node, [program])).stdout).toBe('true 1\n');
});
