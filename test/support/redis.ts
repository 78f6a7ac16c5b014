import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, inject } from 'vitest';
import { usesContainers } from './containers.ts';
import { makeFolder, removeFolder } from './folders.ts';
import { findFreePort } from './ports.ts';
import { findProgram, provide } from './programs.ts';
import { startRedisContainer } from './redis-container.ts';
import { type RedisRun, startRedisProcess } from './redis-process.ts';
import { runDir } from './run.ts';

/** Options of a private Redis. */
export interface RedisOptions {
  /** Default: a free port. 0 means no unencrypted port, for a server whose `args` name a `--tls-port`. */
  port?: number;
  /**
   * More arguments for the server, for example `['--cluster-enabled', 'yes']`. File names are relative to the server's
   * own folder.
   */
  args?: string[];
  /** Files by name, such as certificates. They are written to the server's folder before the server starts. */
  files?: Record<string, string>;
  /**
   * The name of one of `files`. The server reads its settings from this file and writes them back to it, as a Sentinel
   * requires.
   */
  configFile?: string;
}

/**
 * A Redis for one test. The test may stop or freeze the server. The server does not store its data, so it is empty
 * after a restart.
 */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGTERM. The server closes its connections before it ends. */
  shutDown(): Promise<void>;
  /** Starts the server again on the same port, empty, after `kill` or `shutDown`. If it still runs, kills it first. */
  restart(): Promise<void>;
  /** Sends SIGSTOP. After that, connections to the server succeed, but the server never responds. */
  freeze(): Promise<void>;
  /** Sends SIGCONT. */
  thaw(): Promise<void>;
  /** Ends the server, even if it is frozen. */
  stop(): Promise<void>;
}

/** Starts a Redis with these arguments, which may use the files in `folder`. */
type StartRedis = (args: string[], folder: string) => Promise<RedisRun>;

/** Starts a private Redis. Resolves when the server responds. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const port = options.port ?? (await findFreePort());
  const folder = makeFolder('redis', runDir());
  for (const [name, content] of Object.entries(options.files ?? {}))
    writeFileSync(join(folder, name), content);
  const launch = await chooseLauncher();
  const start = async () => {
    const fixed = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      folder,
      '--save',
      '',
      '--appendonly',
      'no',
    ];
    const logFile = join(folder, 'server.log');
    rmSync(logFile, { force: true });
    const settings = options.configFile === undefined ? [] : [join(folder, options.configFile)];
    const run = await launch([...settings, ...fixed, '--logfile', logFile, ...(options.args ?? [])], folder);
    await waitUntilReady(run, logFile);
    return run;
  };
  let run = await start();
  const stop = async () => {
    await run.end('SIGKILL');
    removeFolder(folder);
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill: () => run.end('SIGKILL'),
    shutDown: () => run.end('SIGTERM'),
    restart: async () => {
      await run.end('SIGKILL');
      run = await start();
    },
    freeze: () => run.freeze(),
    thaw: () => run.thaw(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * Returns a Redis for tests that never stop it: the one that `TEST_REDIS_URL` names, or else a private one. Other test
 * files may use the Redis of `TEST_REDIS_URL` at the same time, so keys and channels need names of their own.
 */
export async function openRedis(): Promise<{ url: string; stop(): Promise<void> }> {
  const url = inject('redisUrl');
  return url ? { url, stop: async () => {} } : startRedis();
}

/** Calls `openRedis` for all tests of a file or `describe` block, and connects a client. */
export function useRedis(): { url: string; client: Redis } {
  const opened = {} as { url: string; client: Redis; stop(): Promise<void> };
  beforeAll(async () => {
    const server = await openRedis();
    Object.assign(opened, server, { client: new Redis(server.url) });
  });
  afterAll(async () => {
    opened.client?.disconnect();
    await opened.stop?.();
  });
  return opened;
}

async function chooseLauncher(): Promise<StartRedis> {
  if (usesContainers() || (!findProgram('redis') && inject('redisContainers'))) return startRedisContainer;
  const program = await provide('redis');
  return (args, folder) => startRedisProcess(program, args, folder);
}

async function waitUntilReady(run: RedisRun, logFile: string): Promise<void> {
  for (;;) {
    const log = existsSync(logFile) ? readFileSync(logFile, 'utf8') : '';
    if (log.includes('Ready to accept connections') || log.includes('Sentinel ID is')) return;
    if (!(await run.isRunning())) throw new Error(`Redis does not start:\n${log}`);
    await sleep(5);
  }
}
