import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * What the proxy does with a new connection: connect it to the server (`pass`), accept it and send nothing (`silence`),
 * close it immediately (`close`), or keep it until `release` (`hold`).
 */
type Reception = 'pass' | 'silence' | 'close' | 'hold';

/** A TCP proxy in front of a server. It simulates network faults. */
export interface FaultyProxy extends AsyncDisposable {
  readonly port: number;
  /** The number of connections accepted so far. */
  readonly accepted: number;
  /** The number of open connections. */
  readonly open: number;
  reception: Reception;
  /** Called with each chunk that a client sends, before the server receives it. */
  onRequest: ((chunk: Buffer, client: Socket) => void) | undefined;
  /**
   * Stops all traffic in both directions on the connections that are open now. If one side closes a connection, the
   * other side does not notice.
   */
  stall(): void;
  /** Ends all connections, either gracefully or with a reset. */
  cut(how: 'end' | 'reset'): void;
  /** Connects all new clients to the server at another url. */
  retarget(url: string): void;
  /** Connects the held connections and all new ones to the server. */
  release(): void;
  /** Ends the held connections. */
  closeHeld(): void;
  close(): Promise<void>;
}

interface Link {
  client: Socket;
  server: Socket | undefined;
  stalled: boolean;
}

interface Target {
  host: string;
  port: number;
}

function targetOf(url: string): Target {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}

/** Starts a proxy on a free port of 127.0.0.1 in front of the server at `url`. */
export async function startProxy(url: string): Promise<FaultyProxy> {
  let target = targetOf(url);
  const links = new Set<Link>();
  let accepted = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    accepted++;
    const link: Link = { client, server: undefined, stalled: false };
    links.add(link);
    client.on('error', () => {});
    client.on('close', () => links.delete(link) && link.server?.destroy());
    receive(link);
  });
  const receive = (link: Link) => {
    if (proxy.reception === 'close') link.client.end();
    if (proxy.reception === 'pass') join(link, target, proxy);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.close();
    for (const { client } of links) client.destroy();
  };
  const proxy: FaultyProxy = {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    get open() {
      return links.size;
    },
    reception: 'pass',
    onRequest: undefined,
    stall() {
      for (const link of links) link.stalled = true;
    },
    cut(how) {
      for (const { client } of links) how === 'end' ? client.end() : client.resetAndDestroy();
    },
    retarget(other) {
      target = targetOf(other);
    },
    closeHeld() {
      for (const link of links) if (!link.server) link.client.end();
    },
    release() {
      proxy.reception = 'pass';
      for (const link of links) if (!link.server) join(link, target, proxy);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return proxy;
}

/** Connects the client of a link to the server, and passes on what each of the two sends. */
function join(link: Link, target: Target, proxy: FaultyProxy): void {
  const { client } = link;
  const server = connect({ ...target, allowHalfOpen: true });
  link.server = server;
  server.on('error', () => client.destroy());
  client.on('data', (chunk: Buffer) => {
    proxy.onRequest?.(chunk, client);
    if (!link.stalled) server.write(chunk);
  });
  server.on('data', (chunk: Buffer) => link.stalled || client.write(chunk));
  client.on('end', () => link.stalled || server.end());
  server.on('end', () => link.stalled || client.end());
}
