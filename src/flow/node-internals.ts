import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What Node 24 to 26 offer only inside. Each function says what is missing, and what would be lost without it. */

/** Node's internal handle of a socket. Node's own socket timeout also uses `writeQueueSize` (lib/net.js). */
interface StreamHandle {
  /** Bytes passed to libuv. */
  bytesWritten: number;
  /** Bytes that libuv has not yet passed to the kernel. */
  writeQueueSize: number;
}

/**
 * Returns how many bytes the kernel has taken from a socket. Unlike `socket.bytesWritten`, this number grows during a
 * large write (nodejs/node#44157 asks for a public field). Without it, a slow client that reads a large page steadily
 * would count as stalled.
 */
export function countTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: StreamHandle | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : socket.bytesWritten;
}

/**
 * Keeps a body from resuming its socket while `isPaused` returns true. After each chunk the stream calls `_read`, and
 * Node's own `_read` (lib/_http_incoming.js) resumes the socket. `body.pause()` does not help. It stops the socket only
 * when the stream's buffer is full, which takes 65,536 events if chunks have one byte. The server's `highWaterMark`
 * would shorten that, but also the writes of every response (nodejs/node#32723).
 */
export function pauseWith(body: IncomingMessage, isPaused: () => boolean): void {
  body._read = (bytes) => {
    if (!isPaused()) IncomingMessage.prototype._read.call(body, bytes);
  };
}
