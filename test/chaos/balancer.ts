import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { findFreePort, waitUntilListening } from '../support/ports.ts';
import { noteProcess } from '../support/processes.ts';
import { provide } from '../support/programs.ts';
import { runDir } from '../support/run.ts';

/** HAProxy in front of the replicas, as a deployment has it; it says who answered, and never repeats what was sent. */
export interface Balancer extends AsyncDisposable {
  readonly origin: string;
}

export interface Backend {
  name: string;
  port: number;
}

/** Starts it; it takes connections when this resolves. */
export async function startBalancer(backends: readonly Backend[]): Promise<Balancer> {
  const folder = makeFolder('haproxy', runDir());
  const port = await findFreePort();
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, describe(port, backends));
  const child = spawn(await provide('haproxy'), ['-db', '-q', '-f', file], { stdio: 'ignore' });
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

// A poll whose client has gone is not held any longer. `retry-on` stays at its default: only what found no connection goes to another replica.
const describe = (port: number, backends: readonly Backend[]): string => `
defaults
  mode http
  timeout connect 2s
  timeout check 2s
  timeout client 200s
  timeout server 200s
  retries 3
  option redispatch 1
  option abortonclose
frontend service
  bind 127.0.0.1:${port}
  maxconn 4000
  default_backend replicas
backend replicas
  balance leastconn
  option httpchk GET /readyz
  http-response set-header x-served-by %s
  default-server check inter 500ms fall 3 rise 1
${backends.map((each) => `  server ${each.name} 127.0.0.1:${each.port}`).join('\n')}
`;
