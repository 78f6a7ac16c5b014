import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder, removeFolder } from './support/folders.ts';
import { noteProcess } from './support/processes.ts';
import { runDir } from './support/run.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');

// `script`, a program of util-linux, gives the command a terminal of its own.
test.runIf(process.platform === 'linux')(
  'the first start on a terminal shows one line of progress, and prints the sign-in link last',
  async () => {
    const folder = makeFolder('first-start');
    onTestFinished(() => removeFolder(folder));
    const child = spawn('script', ['-qec', `'${process.execPath}' '${MAIN}'`, '/dev/null'], {
      env: { PATH: process.env.PATH, DATA_DIR: join(folder, 'data'), PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    noteProcess(runDir(), child.pid!);
    let output = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      output += chunk;
      if (/#code=\w+\r\n/.test(output)) break;
    }
    process.kill(Number(readFileSync(join(folder, 'data/owner.pid'), 'utf8')), 'SIGINT');
    await new Promise((resolve) => child.once('exit', resolve));

    const lines = output
      .split('\r\n')
      .map((line) => line.trim())
      .filter(Boolean);
    const [start] = lines;
    expect(start).toContain('Starting: migration applied …');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequence that clears the line
    expect(start).toMatch(/\r\u001b\[2K\d\d:\d\d:\d\d listening role="all" origin="http:[^\r]*$/);
    expect(output).not.toContain('{"level"');
    expect(lines.at(-4)).toMatch(
      /^The API: (?<origin>http:\/\/localhost:\d+)\/api\/v1 \(reference: \k<origin>\/docs\)$/,
    );
    expect(lines.at(-3)).toMatch(/^Invite code: [A-Z0-9]{8}$/);
    expect(lines.at(-1)).toMatch(/^http:\/\/localhost:\d+\/#code=[A-Z0-9]{8}$/);
  },
);
