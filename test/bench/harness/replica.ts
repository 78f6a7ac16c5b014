import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort, waitUntilListening } from '../../support/ports.ts';
import type { Plan } from './bench.ts';
import type { Environment } from './environment.ts';

/** A server in a separate process. Disposing ends it. */
export interface Replica extends AsyncDisposable {
  port: number;
  pid: number;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const REFERENCE = fileURLToPath(new URL('../reference/server.ts', import.meta.url));

/** A new replica must accept connections within this time. On a busy machine, a start takes long. */
const START_MS = 120_000;

/**
 * The settings differ from a deployment's only in the limits, which are too high to be reached. Each request is still
 * counted.
 */
const SETTINGS = {
  NODE_ENV: 'production',
  RATE_LIMIT_REQUESTS: '100000',
  FREE_BOOKMARK_LIMIT: '1000000000',
};

/**
 * Returns a replica with the usual settings. Each benchmark gets a new replica, because earlier requests change a
 * replica's memory and speed. In a smoke run, however, all benchmarks on a database share a replica. A benchmark that
 * needs two replicas gives the second one another name.
 */
export function openReplica({ environment, quick }: Plan, url: string, name = 'first'): Promise<Replica> {
  const start = () => startReplica(environment, url);
  return quick ? borrow(environment.share(`${name} replica of ${url}`, start)) : start();
}

/** Returns a reference server. In a smoke run, all benchmarks on a database share one. */
export function openReference({ environment, quick }: Plan, url: string): Promise<Replica> {
  const start = () => startReference(environment, url);
  return quick ? borrow(environment.share(`reference of ${url}`, start)) : start();
}

/** Returns the server without its dispose function, so that a benchmark that uses the server does not end it. */
const borrow = async (server: Promise<Replica>): Promise<Replica> => {
  const { port, pid } = await server;
  return { port, pid, [Symbol.asyncDispose]: async () => {} };
};

/** Starts a replica with the given role, and writes its log to a file. `settings` override `SETTINGS`. */
export async function startReplica(
  environment: Environment,
  databaseUrl: string,
  settings: Record<string, string> = {},
  role: 'api' | 'worker' = 'api',
): Promise<Replica> {
  const port = await findFreePort();
  const logFile = join(environment.folder, `${role}-${port}.log`);
  const log = openSync(logFile, 'w');
  const { execArgv, ...variables } = splitArguments(settings);
  const child = spawn(process.execPath, [...execArgv, 'src/main.ts', role], {
    cwd: ROOT,
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env.PATH,
      ...SETTINGS,
      DATABASE_URL: databaseUrl,
      REDIS_URL: environment.redis.url,
      PORT: String(port),
      ...environment.settings,
      ...variables,
    },
  });
  closeSync(log);
  const replica = replicaOf(child, port, 'SIGTERM');
  const reportDeath = (code: number | null, signal: NodeJS.Signals | null) =>
    console.error(describeDeath(`${role} on port ${port}`, code ?? signal, readFileSync(logFile, 'utf8')));
  child.once('exit', reportDeath);
  const end = once(child, 'exit').then(() => {
    throw new Error(`the service does not start: ${readFileSync(logFile, 'utf8')}`);
  });
  end.catch(() => {});
  try {
    await Promise.race([waitUntilListening(port, START_MS), end]);
  } catch (error) {
    child.off('exit', reportDeath);
    child.kill('SIGKILL');
    throw error;
  }
  return {
    ...replica,
    async [Symbol.asyncDispose]() {
      child.off('exit', reportDeath);
      await replica[Symbol.asyncDispose]();
    },
  };
}

/** Describes a replica that ended unexpectedly: its exit code or signal, and the last lines of its log. */
export const describeDeath = (name: string, how: number | string | null, log: string): string =>
  `${name} ended with ${how}. The end of its log:\n${log.trimEnd().split('\n').slice(-20).join('\n')}`;

/**
 * Returns `settings`, and as `execArgv` the options for Node from `BENCH_NODE_ARGS` (for example `--cpu-prof`). These
 * options apply only to the service, not to the reference.
 */
function splitArguments(settings: Record<string, string>) {
  const given = process.env.BENCH_NODE_ARGS?.split(' ').filter(Boolean) ?? [];
  return { execArgv: given, ...settings };
}

/** Starts the reference server with a database and the environment's Redis. */
async function startReference({ redis }: Environment, databaseUrl: string): Promise<Replica> {
  const child = fork(REFERENCE, {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      NODE_ENV: 'production',
    },
  });
  const [port] = (await once(child, 'message')) as [number];
  return replicaOf(child, port, 'SIGKILL');
}

function replicaOf(child: ChildProcess, port: number, signal: NodeJS.Signals): Replica {
  const ended = once(child, 'exit');
  return {
    port,
    pid: child.pid!,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await ended;
    },
  };
}
