import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Sample } from './rounds.ts';
import { type Latency, spreadOf } from './stats.ts';

/**
 * Requests to send. By default each connection sends its next request after a response (a closed loop), which measures
 * throughput. With `perSecond`, requests are sent at a fixed rate (an open loop), which measures latency. A closed loop
 * cannot measure latency, because it sends nothing while the server stalls.
 */
export interface LoadJob {
  port: number;
  path: string;
  /** The bodies, used in turn. */
  bodies: string[];
  /** The tokens, used in turn. If empty, requests have no token. */
  tokens: string[];
  /** Whole requests, used in turn instead of path, bodies and tokens. */
  requests?: { path: string; body: string; token: string }[];
  connections: number;
  seconds: number;
  /** The rate of an open loop. The latency of a request counts from the time when the request was due. */
  perSecond?: number;
  /** The status that counts as a success. */
  expectStatus: number;
}

/** The report of a load process. */
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

/** Sends requests to a server from a separate process. */
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

/** Runs a load at full speed. Returns its rate. */
export async function sampleLoad(job: LoadJob): Promise<Sample> {
  const report = await runLoad(job);
  if (report.failure !== undefined) throw new Error(`${job.path} answered: ${report.failure}`);
  const { requests, seconds, failures } = report;
  return { rate: requests / seconds, operations: requests, failures };
}

/** The number of connections of an open loop. All are busy only if the server is far behind. */
const OPEN_CONNECTIONS = 64;

/** Measures latencies at a fixed rate. */
export async function measureLatency(job: LoadJob & { perSecond: number }): Promise<Latency> {
  const report = await runLoad({ ...job, connections: OPEN_CONNECTIONS });
  if (report.failure !== undefined) throw new Error(`${job.path} answered: ${report.failure}`);
  return report.latency;
}

/** Returns the rate at which latency is measured: half of the server's throughput. */
export const halfOf = (rates: readonly number[]): number => spreadOf(rates).median / 2;
