import type { Socket } from 'node:net';

/** The connections that requests came on: how many requests each has open, and whether its client takes what it is sent. */

/**
 * HTTP lets a client send requests without waiting for responses. Node handles all of them at once and keeps the responses
 * in order, so each open request costs memory. Browsers, proxies and libraries send one at a time.
 */
const MAX_OPEN_REQUESTS = 16;

/**
 * Less is no progress: a client that takes one byte a while would hold its response for hours. With 30 s it is half a
 * kibibyte a second, less than the slowest mobile networks carry.
 */
const PROGRESS_BYTES = 16 * 1_024;

/** How often in its time a connection is checked: it is cut late by one such part at most. */
const CHECKS_PER_STALL = 30;

/** What Node knows of a socket below JavaScript; its own socket timeout decides by `writeQueueSize` (net.js). */
interface StreamHandle {
  /** Bytes that were handed to libuv. */
  bytesWritten: number;
  /** Those of them that the kernel has not taken yet. */
  writeQueueSize: number;
}

/** Bytes that the kernel has taken on a connection. A large write counts as it goes, not only once all of it went. */
function countTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: StreamHandle | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : socket.bytesWritten;
}

/** One connection, from its first request to its end. */
export class Connection {
  readonly #socket: Socket;
  /** Requests whose responses have not left whole. */
  #openRequests = 0;
  /** Bytes that the kernel had taken when the oldest open request came. */
  #takenBefore = 0;
  /** Bytes that the kernel had taken when the client last made progress. */
  #taken = 0;
  /** When that was, in milliseconds of `performance.now()`; undefined while nothing is unsent. */
  #progressAt: number | undefined;
  #isStalled = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether it was cut because its client took nothing. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** How much of the response at its head the client had taken at its last progress. */
  get sentBytes(): number {
    return Math.max(0, this.#taken - this.#takenBefore);
  }

  /** Counts a request that came; false where too many are open: the connection is cut. */
  begin(): boolean {
    if (this.#openRequests === 0) this.#takenBefore = this.#socket.bytesWritten;
    this.#openRequests += 1;
    if (this.#openRequests <= MAX_OPEN_REQUESTS) return true;
    this.#socket.resetAndDestroy();
    return false;
  }

  /** A response left whole, or never will. */
  end(): void {
    this.#openRequests -= 1;
  }

  /** Cuts the connection where its client has taken too little for `stallMs`. */
  check(now: number, stallMs: number): void {
    if (this.#socket.writableLength === 0) {
      this.#progressAt = undefined;
      return;
    }
    const taken = countTaken(this.#socket);
    if (this.#progressAt === undefined || taken >= this.#taken + PROGRESS_BYTES) {
      this.#progressAt = now;
      this.#taken = taken;
    }
    if (now - this.#progressAt < stallMs) return;
    this.#isStalled = true;
    // Not an end but a reset: the kernel then drops what it holds for the client too.
    this.#socket.resetAndDestroy();
  }
}

/** Cuts each connection whose client takes less than `PROGRESS_BYTES` of what is unsent within `stallMs`. */
export class Connections {
  readonly #stallMs: number;
  readonly #connections = new Map<Socket, Connection>();
  readonly #timer: NodeJS.Timeout;

  constructor(stallMs: number) {
    this.#stallMs = stallMs;
    this.#timer = setInterval(() => this.#checkAll(), stallMs / CHECKS_PER_STALL);
    this.#timer.unref();
  }

  /** The connection of a request; undefined once it has ended. */
  of(socket: Socket): Connection | undefined {
    const known = this.#connections.get(socket);
    if (known !== undefined || socket.destroyed) return known;
    const connection = new Connection(socket);
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    return connection;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #checkAll(): void {
    const now = performance.now();
    for (const connection of this.#connections.values()) connection.check(now, this.#stallMs);
  }
}
