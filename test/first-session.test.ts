import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { type Fence, parseMarkdown } from './documents/markdown.ts';
import { makeFolder } from './support/folders.ts';
import { noteProcess } from './support/processes.ts';
import { provide } from './support/programs.ts';
import { runDir } from './support/run.ts';
import { useService } from './support/service.ts';

/** Runs the first session of the README line by line, as a newcomer types it. */

const ROOT = join(import.meta.dirname, '..');

const service = useService();

beforeAll(() => provide('curl'));

function readSession(): Fence[] {
  const text = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const [, section] = /^## A first session\n([\s\S]*?)^## /m.exec(text)!;
  return parseMarkdown('README.md', section!).fences;
}

/** Replaces values of the document with those of this test, as a newcomer does while typing. */
const fillIn = (text: string, values: Record<string, string>): string =>
  Object.entries(values).reduce((filled, [from, to]) => {
    expect(filled).toContain(from);
    return filled.replaceAll(from, to);
  }, text);

/** Runs lines in a shell and returns their output. Fails if one of the lines fails. */
async function runLines(lines: string, env: Record<string, string> = {}): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-e', '-c', lines], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: runDir(), NODE_COMPILE_CACHE: `${runDir()}/compiled`, ...env },
  });
  return stdout;
}

/** Runs a program until its output contains a text, then ends it as Ctrl-C does. */
async function runUntil(file: string, env: Record<string, string>, text: string): Promise<void> {
  const child = spawn(process.execPath, [file], { env: { PATH: process.env.PATH, ...env } });
  noteProcess(runDir(), child.pid!);
  const exited = once(child, 'exit');
  let output = '';
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk;
  });
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    output += chunk;
    if (output.includes(text)) break;
  }
  expect(output, errors).toContain(text);
  child.kill('SIGINT');
  await exited;
}

test('the first session of the README works as described', async () => {
  const { origin } = service;
  const [exchange, requests, typescript, commandLine, operator, ...others] = readSession();
  expect(others).toEqual([]);

  const code = await service.invite('you@localhost');
  const exchanged = await runLines(
    fillIn(exchange!.text, { 'http://localhost:3000': origin, 'CODE=…': `CODE=${code}` }),
  );
  const { token } = JSON.parse(exchanged);

  const base = `BASE=${origin}/api/v1\n`;
  const printed = await runLines(base + fillIn(requests!.text, { 'bks_…': token }));
  const [added, found, synced] = printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(found.bookmarks).toEqual([added]);
  expect(synced).toMatchObject({ bookmarks: [added], cursor: added.id, waited: false });

  const folder = makeFolder('session', runDir());
  const file = join(folder, 'session.ts');
  const client = `'${join(ROOT, 'src/client/index.ts')}'`;
  writeFileSync(
    file,
    fillIn(typescript!.text, { 'http://localhost:3000': origin, "'./src/client/index.ts'": client }),
  );
  await runUntil(file, { TOKEN: token }, `${added.id} An example (continue from `);

  const typed = fillIn(commandLine!.text, {
    'http://localhost:3000': origin,
    'bookmarks.json': join(folder, 'bookmarks.json'),
    'bookmarks.sqlite': join(folder, 'bookmarks.sqlite'),
    // With `--follow`, the command would run forever.
    'sync --follow': 'sync',
  });
  const shown = await runLines(typed, { TOKEN: token, XDG_CONFIG_HOME: folder });
  expect(shown).toContain('3 bookmarks in a JSON export of this service');
  expect(shown).toContain('3 bookmarks; 0 local changes processed');
  expect(shown.trim().split('\n').slice(-3)).toEqual([
    expect.stringContaining('An example'),
    expect.stringContaining('Node'),
    expect.stringContaining('Postgres'),
  ]);

  const made = await runLines(operator!.text, { DATABASE_URL: service.database.url });
  expect(
    made
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { code: expect.stringMatching(/^[A-Z0-9]{8}$/), email: 'ann@example.org' },
    { email: 'bob@example.org', is_premium: true },
    { token: expect.stringMatching(/^bka_/), scope: 'read', name: 'backup' },
  ]);
});
