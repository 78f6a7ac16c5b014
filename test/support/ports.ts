import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A port of 127.0.0.1 that no process listens on now. */
export async function findFreePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Resolves when a server takes connections at the port; rejects after `limitMs`. */
export async function waitUntilListening(port: number, limitMs = 30_000): Promise<void> {
  const giveUpAt = Date.now() + limitMs;
  while (!(await takesConnections(port))) {
    if (Date.now() > giveUpAt) throw new Error(`nothing listens on port ${port} after ${limitMs} ms`);
    await sleep(5);
  }
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
