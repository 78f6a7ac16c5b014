import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from './folders.ts';
import { findFreePort, waitUntilListening } from './ports.ts';
import { noteProcess } from './processes.ts';
import { provide } from './programs.ts';
import { runDir } from './run.ts';

/** A load balancer in front of replicas. */
export interface Balancer extends AsyncDisposable {
  /** `http://127.0.0.1:port` */
  readonly origin: string;
}

/**
 * Starts HAProxy with the configuration that `describe` returns for a free port and an empty folder. Resolves when
 * HAProxy accepts connections.
 */
export async function runHaproxy(describe: (port: number, folder: string) => string): Promise<Balancer> {
  const program = await provide('haproxy');
  const folder = makeFolder('haproxy', runDir());
  const port = await findFreePort();
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, describe(port, folder));
  const child = spawn(program, ['-db', '-q', '-f', file], { stdio: 'ignore' });
  noteProcess(runDir(), child.pid!);
  const ended = once(child, 'exit');
  await waitUntilListening(port);
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      removeFolder(folder);
    },
  };
}

/** How often HAProxy checks `/readyz`. A replica's `DRAIN_SECONDS` must be longer than this interval. */
const HEALTH_CHECK_MS = 200;

/** Starts HAProxy in front of these ports of this machine. HAProxy tries another port if it cannot connect to one. */
export const startHaproxy = (ports: readonly number[]): Promise<Balancer> =>
  runHaproxy((port) => describeBalancer(port, ports));

const describeBalancer = (port: number, ports: readonly number[]): string => `
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 5s
  retries 3
  option redispatch 1
frontend service
  bind 127.0.0.1:${port}
  default_backend replicas
backend replicas
  option httpchk GET /readyz
  default-server check inter ${HEALTH_CHECK_MS}ms fall 1 rise 1
${ports.map((each) => `  server replica-${each} 127.0.0.1:${each}`).join('\n')}
`;
