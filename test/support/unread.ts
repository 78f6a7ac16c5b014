import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A client that sends requests and does not read the responses. If its connection is reset, it does not notice until
 * it reads.
 */
export interface UnreadClient extends Disposable {
  readonly socket: Socket;
  /** Reads and discards everything. Returns the error code if the connection was reset, otherwise undefined. */
  readToEnd(): Promise<string | undefined>;
  /**
   * Reads at least this many bytes and returns how many it has read. The number is lower if the connection ends first.
   */
  take(bytes: number): Promise<number>;
}

/** Formats the bytes of a POST request. Each of `headers` is a whole header line. */
export function formatPost(path: string, token: string, body: unknown = {}, ...headers: string[]): string {
  const text = JSON.stringify(body);
  return (
    `POST /api/v1${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
    headers.map((header) => `${header}\r\n`).join('') +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

/** Opens a connection and sends these bytes. Resolves when they are sent. */
export async function sendUnread(origin: string, bytes: string): Promise<UnreadClient> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  socket.pause();
  let code: string | undefined;
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code;
  });
  const ended = new Promise<string | undefined>((resolve) => socket.once('close', () => resolve(code)));
  await once(socket, 'connect');
  await new Promise((resolve) => socket.write(bytes, resolve));
  return {
    socket,
    readToEnd() {
      socket.resume();
      return ended;
    },
    async take(minBytes) {
      let taken = 0;
      while (taken < minBytes && !socket.destroyed) {
        const chunk: Buffer | null = socket.read();
        if (chunk === null) await sleep(5);
        else taken += chunk.length;
      }
      return taken;
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
