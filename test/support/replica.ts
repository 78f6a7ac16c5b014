import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { ServingRole } from '../../src/process/serve.ts';
import { findFreePort } from './ports.ts';
import { post } from './post.ts';
import { freezeFamily, killFamily, noteProcess, thawFamily } from './processes.ts';
import { type ApiResponse, readResponse } from './responses.ts';
import { runDir } from './run.ts';
import { until } from './until.ts';

/** A line of a replica's log. */
export interface LogLine {
  level: number;
  msg: string;
  [fact: string]: unknown;
}

/** The exit code of a process, or the signal that killed it. */
type ProcessEnd = number | NodeJS.Signals;

/** A process of the service, as it is deployed. */
export interface Replica extends AsyncDisposable {
  /** `http://127.0.0.1:port` */
  readonly origin: string;
  readonly pid: number;
  /** All lines of the log so far. */
  readonly log: readonly LogLine[];
  readonly ended: Promise<ProcessEnd>;
  /** Sends a request with a token, by means of `post.ts`. */
  post(path: string, body: unknown, token: string, options?: RequestInit): Promise<ApiResponse>;
  /** Returns the response of `/readyz`. */
  readiness(): Promise<ApiResponse>;
  /** Returns the values of the metrics by name and labels. */
  metrics(): Promise<Map<string, number>>;
  /** Resolves when the replica holds this many polls. */
  untilHeld(count: number): Promise<void>;
  /**
   * Resolves with the first line of the log that has this message. The line may already be there. Rejects if the
   * process ends before it logs the line.
   */
  untilLogged(message: string): Promise<LogLine>;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGTERM. Resolves with the exit code, or with the signal that killed the process. */
  stop(): Promise<ProcessEnd>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
}

/** Environment variables for a replica. All others have their defaults, regardless of this process's environment. */
export type ReplicaEnv = Record<string, string | number>;

/** The tests' own defaults. They raise or disable limits that most tests would otherwise reach. */
const TEST_ENV: ReplicaEnv = {
  PORT: 0,
  RATE_LIMIT_REQUESTS: 100_000,
  OVERLOAD_EVENT_LOOP_MS: 0,
  OVERLOAD_POOL_WAIT_MS: 0,
};

/**
 * Starts `node src/main.ts <role>`. Resolves when the replica serves requests. Rejects with the replica's error output
 * if the replica does not start.
 */
export async function startReplica(role: ServingRole, env: ReplicaEnv): Promise<Replica> {
  const metricsPort = Number(env.METRICS_PORT ?? (await findFreePort()));
  const child = spawnMain([role], { ...TEST_ENV, METRICS_PORT: metricsPort, ...env });
  noteProcess(runDir(), child.pid!);
  const log = readLog(child);
  const ended = once(child, 'exit').then(([code, signal]): ProcessEnd => code ?? signal);
  const { origin } = await log.until('listening');
  let isFrozen = false;
  const kill = async () => {
    if (isFrozen) killFamily(child.pid!);
    else child.kill('SIGKILL');
    await ended;
  };
  return {
    origin: String(origin),
    pid: child.pid!,
    log: log.lines,
    ended,
    post(path, body, token, options) {
      const response = post(String(origin), path, body, { ...options, token });
      // A test that fails early kills the replica without awaiting this promise. In that case, only the test's own
      // failure should be reported.
      response.catch(() => {});
      return response;
    },
    readiness: async () => readResponse(await fetch(`${origin}/readyz`)),
    metrics: () => scrape(metricsPort),
    untilHeld: async (count) => {
      await until(async () => (await scrape(metricsPort)).get('bookmarks_waiters') === count);
    },
    untilLogged: log.until,
    signal: (signal) => void child.kill(signal),
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    kill,
    freeze: () => {
      isFrozen = true;
      return freezeFamily(child.pid!);
    },
    thaw: () => {
      thawFamily(child.pid!);
      isFrozen = false;
    },
    [Symbol.asyncDispose]: kill,
  };
}

/**
 * Runs `node src/main.ts` with these arguments until the process ends, and returns its output, parsed as JSON. Rejects
 * with its error output unless the exit code is 0.
 */
export async function runMain(args: readonly string[], env: ReplicaEnv): Promise<unknown> {
  const child = spawnMain(args, env);
  const [outcome, output, errors] = await Promise.all([
    once(child, 'close'),
    child.stdout!.setEncoding('utf8').toArray(),
    child.stderr!.setEncoding('utf8').toArray(),
  ]);
  if (outcome[0] !== 0) throw new Error(`${args.join(' ')} ended with ${outcome[0]}: ${errors.join('')}`);
  return JSON.parse(output.join(''));
}

function spawnMain(args: readonly string[], env: ReplicaEnv): ChildProcess {
  const texts = Object.entries(env).map(([name, value]) => [name, String(value)]);
  return spawn(process.execPath, ['src/main.ts', ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: `${runDir()}/compiled`, ...Object.fromEntries(texts) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

interface ReplicaLog {
  lines: LogLine[];
  until(message: string): Promise<LogLine>;
}

/** Collects the log of a process. `until` waits for a line with this message. */
function readLog(child: ChildProcess): ReplicaLog {
  const lines: LogLine[] = [];
  const errors: string[] = [];
  const waits = new Set<{ message: string; found(line: LogLine): void; failed(error: Error): void }>();
  createInterface({ input: child.stdout! }).on('line', (text) => {
    const line: LogLine = JSON.parse(text);
    lines.push(line);
    for (const wait of waits) if (wait.message === line.msg) wait.found(line);
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  const describeEnd = () =>
    new Error(`the replica ended:\n${errors.join('')}${JSON.stringify(lines.slice(-5))}`);
  child.once('close', () => {
    for (const wait of waits) wait.failed(describeEnd());
  });
  const until = (message: string) => {
    const past = lines.find((line) => line.msg === message);
    if (past) return Promise.resolve(past);
    return new Promise<LogLine>((found, failed) => waits.add({ message, found, failed }));
  };
  return { lines, until };
}

/** Reads the values of metrics by name and labels. `port` is the `METRICS_PORT` of a process. */
export async function scrape(port: number): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}
