import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { noteProcess } from './processes.ts';
import { runDir } from './run.ts';

/** How `node src/main.ts …` ended. */
export interface Outcome {
  code: number | null;
  output: string;
  errors: string;
}

/** Runs `node src/main.ts` with these arguments and no variables but these, to its end. */
export async function runCommand(args: readonly string[], env: Record<string, string>): Promise<Outcome> {
  const child = spawn(process.execPath, ['src/main.ts', ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: `${runDir()}/compiled`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  noteProcess(runDir(), child.pid!);
  const [[code], output, errors] = await Promise.all([
    once(child, 'close'),
    child.stdout.setEncoding('utf8').toArray(),
    child.stderr.setEncoding('utf8').toArray(),
  ]);
  return { code, output: output.join(''), errors: errors.join('') };
}
