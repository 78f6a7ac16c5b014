import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readConfig } from '../../src/config.ts';
import { runProgram } from '../../src/program.ts';
import { noteProcess } from './processes.ts';
import { runDir } from './run.ts';

/** The exit code and the output of `node src/main.ts …`. */
export interface Outcome {
  code: number | null;
  output: string;
  errors: string;
}

/** A running command. */
export interface RunningCommand {
  ended: Promise<Outcome>;
  /** Resolves when the command's output contains the text. Rejects if the command ends before that. */
  untilLogged(text: string): Promise<void>;
}

/** Starts `node src/main.ts` with these arguments. Its variables are `env`, `PATH` and `NODE_COMPILE_CACHE`. */
export function startCommand(args: readonly string[], env: Record<string, string>): RunningCommand {
  const child = spawn(process.execPath, ['src/main.ts', ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: `${runDir()}/compiled`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  noteProcess(runDir(), child.pid!);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = once(child, 'close').then(([code]) => ({ code, output, errors }));
  const untilLogged = async (text: string) => {
    while (!output.includes(text)) {
      const next = await Promise.race([once(child.stdout, 'data'), ended.then(() => undefined)]);
      if (next === undefined && !output.includes(text)) throw new Error(`ended without "${text}": ${errors}`);
    }
  };
  return { ended, untilLogged };
}

/** Starts the command as `startCommand` does. Resolves with its outcome when the command has ended. */
export const runCommand = (args: readonly string[], env: Record<string, string>): Promise<Outcome> =>
  startCommand(args, env).ended;

/**
 * Runs in this process what `src/main.ts` would run with these arguments. Admin commands see only the variables in
 * `env`. The roles and `migrate` read `process.env` instead.
 */
export async function runHere(args: readonly string[], env: Record<string, string>): Promise<Outcome> {
  const outcome = { code: 0, output: '', errors: '' };
  outcome.code = await runProgram(args, {
    readConfig: () => readConfig(env),
    out: (text) => {
      outcome.output += text;
    },
    err: (text) => {
      outcome.errors += text;
    },
  });
  return outcome;
}
