import { PassThrough, Readable } from 'node:stream';
import { readEnvironment } from '../../src/cli/environment.ts';
import { runCli } from '../../src/cli/program.ts';

/** The exit code and the output of a command. */
export interface CliRun {
  code: number;
  out: string;
  err: string;
}

export interface CliOptions {
  env?: Record<string, string>;
  /** Standard input. It is a terminal if `screen` is given too. */
  input?: string | Uint8Array;
  /** The width of the terminal. If it is undefined, the command has no terminal. */
  screen?: number;
  signal?: AbortSignal;
  /** Called with all of standard output so far, whenever it grows. */
  onOutput?: (out: string) => void;
  /** Called with all of standard error so far, whenever it grows. */
  onErrorOutput?: (err: string) => void;
}

/** Runs the command line in this process. The command sees only the variables in `env`. */
export async function runCommand(args: string[], options: CliOptions = {}): Promise<CliRun> {
  const { env = {}, input = '', screen, signal = new AbortController().signal } = options;
  const onGrowth = { out: options.onOutput, err: options.onErrorOutput };
  const run = { out: '', err: '' };
  const terminal = screen === undefined ? {} : { isTTY: true, columns: screen };
  const collect = (name: 'out' | 'err') => {
    const stream = new PassThrough();
    stream.setEncoding('utf8').on('data', (text: string) => {
      run[name] += text;
      onGrowth[name]?.(run[name]);
    });
    return Object.assign(stream, terminal);
  };
  const stdin = Object.assign(Readable.from([Buffer.from(input as string)]), terminal);
  const streams = { stdin, stdout: collect('out'), stderr: collect('err') };
  const code = await runCli(args, readEnvironment(env), streams, signal);
  await new Promise(setImmediate);
  return { code, ...run };
}
