import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Sample } from './rounds.ts';
import { type Latency, spreadOf } from './stats.ts';

/**
 * Requests for a closed loop, in which each connection sends the next one when its response is there; with `perSecond` for an
 * open one. A closed loop shows what the server can do. It sends nothing while the server stalls, so only an open one
 * shows how long requests take.
 */
export interface LoadJob {
  port: number;
  path: string;
  /** Taken in turn. */
  bodies: string[];
  /** Taken in turn; none: requests go without. */
  tokens: string[];
  /** Instead of path, bodies and tokens: whole requests, taken in turn. */
  requests?: { path: string; body: string; token: string }[];
  connections: number;
  seconds: number;
  /** Sends at this rate, whatever the server does; a request's time runs from when it was due. */
  perSecond?: number;
  /** Any other status is a failure. */
  expectStatus: number;
}

/** What a load process reports. */
export interface LoadReport {
  requests: number;
  failures: number;
  /** The first unexpected response. */
  failure: string | undefined;
  seconds: number;
  latency: Latency;
  bytes: number;
  cpuMs: number;
}

const PROGRAM = fileURLToPath(new URL('../load-process.ts', import.meta.url));

/** Puts load on a server from a process of its own. */
export async function runLoad(job: LoadJob): Promise<LoadReport> {
  const child = fork(PROGRAM, { serialization: 'advanced' });
  const exit = once(child, 'exit');
  child.send(job);
  const message = once(child, 'message') as Promise<[LoadReport]>;
  const report = await Promise.race([
    message.then(([report]) => report),
    exit.then(([code]) => Promise.reject(new Error(`the load process ended with ${code}`))),
  ]);
  await exit;
  return report;
}

/** As one run of a side, as fast as it goes. */
export async function sampleLoad(job: LoadJob): Promise<Sample> {
  const report = await runLoad(job);
  if (report.failure !== undefined) throw new Error(`${job.path} answered: ${report.failure}`);
  const { requests, seconds, failures } = report;
  return { rate: requests / seconds, operations: requests, failures };
}

/** Connections of an open loop: more than can be busy unless the server is far behind. */
const OPEN_CONNECTIONS = 64;

/** Latencies at a fixed rate. */
export async function measureLatency(job: LoadJob & { perSecond: number }): Promise<Latency> {
  const report = await runLoad({ ...job, connections: OPEN_CONNECTIONS });
  if (report.failure !== undefined) throw new Error(`${job.path} answered: ${report.failure}`);
  return report.latency;
}

/** The rate at which latencies are measured: a server that has half of what it can do to do. */
export const halfOf = (rates: readonly number[]): number => spreadOf(rates).median / 2;
