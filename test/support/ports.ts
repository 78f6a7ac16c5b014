import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The first port that tests use. All ports of tests are below Linux's range for outgoing connections. Otherwise an
 * outgoing connection could take a port before the test's server does.
 */
const FIRST_PORT = 20_000;

const PORTS = 12_000;

/**
 * Each process begins its search for a free port at its id times this number. So processes that search at the same time
 * begin at different ports.
 */
const PORTS_OF_A_PROCESS = 97;

let next = process.pid * PORTS_OF_A_PROCESS;

/** Returns a port of 127.0.0.1 on which no process listens now. Each call returns a different port. */
export async function findFreePort(): Promise<number> {
  let port: number;
  do {
    port = FIRST_PORT + (next % PORTS);
    next += 1;
  } while (!(await isFree(port)));
  return port;
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  probe.listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}

/** Resolves when a server accepts connections at the port. Rejects after `limitMs`. */
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
