import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { EndpointBalancer } from '../load/balancer.ts';

/**
 * Starts a balancer that works like a Service on a node. It passes each new connection unchanged to the next endpoint.
 */
export async function startServiceBalancer(): Promise<EndpointBalancer> {
  const endpoints: string[] = [];
  const sockets = new Set<Socket>();
  let next = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const endpoint = endpoints[next++ % endpoints.length];
    if (endpoint === undefined) return void client.resetAndDestroy();
    const port = Number(new URL(endpoint).port);
    const upstream = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => other.destroy());
      socket.on('close', () => sockets.delete(socket));
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    add: async (origin) => void endpoints.push(origin),
    remove: async (origin) => void endpoints.splice(endpoints.indexOf(origin), 1),
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
