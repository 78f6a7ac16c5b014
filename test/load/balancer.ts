import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Balancer, runHaproxy } from '../support/haproxy.ts';

/** A balancer that gets the list of pods from outside, as in a cluster. It never checks whether the pods work. */
export interface EndpointBalancer extends Balancer {
  /** Starts sending requests to an address. */
  add(origin: string): Promise<void>;
  /** Stops sending requests to an address. Requests in flight continue. */
  remove(origin: string): Promise<void>;
}

/**
 * Starts HAProxy without pods, with room for `size` pods. HAProxy never retries, so clients see every fault of a pod.
 */
export async function startEndpointBalancer(size: number): Promise<EndpointBalancer> {
  let socket = '';
  const balancer = await runHaproxy((port, folder) => {
    socket = join(folder, 'admin.sock');
    return describeBalancer(port, socket, size);
  });
  const slots = new Map<string, number>();
  const findSlot = () =>
    Array.from({ length: size }, (_, n) => n).find((n) => ![...slots.values()].includes(n));
  return {
    ...balancer,
    async add(origin) {
      const slot = findSlot();
      if (slot === undefined) throw new Error('the balancer has no room for another pod');
      slots.set(origin, slot);
      await command(socket, `set server pods/s${slot} state maint`);
      await command(socket, `set server pods/s${slot} addr 127.0.0.1 port ${new URL(origin).port}`);
      await command(socket, `set server pods/s${slot} state ready`);
    },
    async remove(origin) {
      await command(socket, `set server pods/s${slots.get(origin)} state drain`);
      slots.delete(origin);
    },
  };
}

async function command(path: string, line: string): Promise<void> {
  const socket = connect(path);
  socket.end(`${line}\n`);
  const response = (await text(socket)).trim();
  if (response !== '' && !response.includes('changed')) throw new Error(`${line}: ${response}`);
}

const describeBalancer = (port: number, socket: string, size: number): string => `
global
  stats socket ${socket} mode 600 level admin
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  retries 0
frontend service
  bind 127.0.0.1:${port}
  default_backend pods
backend pods
  balance leastconn
${Array.from({ length: size }, (_, n) => `  server s${n} 127.0.0.1:1 disabled`).join('\n')}
`;
