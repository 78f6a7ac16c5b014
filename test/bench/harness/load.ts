import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Sample } from './rounds.ts';
import type { Latency } from './stats.ts';

/** Requests for a closed loop: each connection sends the next one when its response is there. */
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

/** As one run of a side. */
export async function sampleLoad(job: LoadJob): Promise<Sample> {
  const report = await runLoad(job);
  if (report.failure !== undefined) throw new Error(`${job.path} answered: ${report.failure}`);
  const { requests, seconds, latency, failures } = report;
  return { rate: requests / seconds, operations: requests, latency, failures };
}
