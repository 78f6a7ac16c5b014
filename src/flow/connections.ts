import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { countTaken } from './node-internals.ts';

/** Tracks connections: which requests each has open, and whether its client reads the responses. */

/**
 * A connection with more open requests than this is cut. A client may send requests without waiting for responses. Node
 * handles all of them at the same time and sends the responses in order, so each open request costs memory. Browsers,
 * proxies and libraries send one request at a time.
 */
const MAX_OPEN_REQUESTS = 16;

/**
 * A client must read this many bytes within the stall time. Otherwise a client could hold a response for hours by
 * reading one byte now and then.
 */
const PROGRESS_BYTES = 16 * 1_024;

/**
 * How often each connection is checked within the stall time. So a stalled connection is cut at most a thirtieth of the
 * stall time too late.
 */
const CHECKS_PER_STALL = 30;

/** A client's connection. Notices when the client stops reading its responses. */
export class Connection {
  readonly #socket: Socket;
  /** The responses that are not sent completely, in the order of their requests. */
  readonly #openResponses = new Set<ServerResponse>();
  /** Whether the latest response was sent before the whole body of its request had arrived. */
  #isAnsweredEarly = false;
  /** How many bytes had been written to the socket when a request last arrived while no other was open. */
  #writtenBefore = 0;
  /** How many bytes in total the kernel had taken from the socket when the client last made progress. */
  #takenAtProgress = 0;
  /** When the client last made progress, by `performance.now()`; undefined while no bytes wait to be sent. */
  #progressAt: number | undefined;
  #isStalled = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Whether the connection was cut because its client did not read. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** How many bytes of the latest responses the kernel had taken when the client last made progress. */
  get sentBytes(): number {
    return Math.max(0, this.#takenAtProgress - this.#writtenBefore);
  }

  /** Opens a request that will get this response. If too many are open, cuts the connection and returns false. */
  begin(response: ServerResponse): boolean {
    if (this.#openResponses.size === 0) this.#writtenBefore = this.#socket.bytesWritten;
    this.#openResponses.add(response);
    this.#isAnsweredEarly = false;
    if (this.#openResponses.size <= MAX_OPEN_REQUESTS) return true;
    this.#socket.resetAndDestroy();
    return false;
  }

  /** Notes that a response was sent or aborted. */
  end(response: ServerResponse): void {
    this.#openResponses.delete(response);
    this.#isAnsweredEarly = !response.req.complete;
  }

  /**
   * Waits for the responses to all requests that arrived before a malformed one. Returns whether the malformed request
   * still needs a response. It needs none if its fault is in a body, and the response did not wait for this body.
   */
  async finishBeforeFault(): Promise<boolean> {
    for (const response of this.#openResponses) {
      // The request without its whole body is the malformed one.
      if (!response.req.complete && !response.writableEnded) return true;
      await new Promise((resolve) => response.once('close', resolve));
    }
    return !this.#isAnsweredEarly;
  }

  /** Cuts the connection if its client has read too little for `stallMs`. */
  check(now: number, stallMs: number): void {
    if (this.#socket.writableLength === 0) {
      this.#progressAt = undefined;
      return;
    }
    const taken = countTaken(this.#socket);
    if (this.#progressAt === undefined || taken >= this.#takenAtProgress + PROGRESS_BYTES) {
      this.#progressAt = now;
      this.#takenAtProgress = taken;
    }
    if (now - this.#progressAt < stallMs) return;
    this.#isStalled = true;
    // The connection ends with a reset, because the kernel would keep the unread bytes after an orderly end.
    this.#socket.resetAndDestroy();
  }
}

/** Cuts each connection whose client reads less than `PROGRESS_BYTES` in `stallMs`, although there is more to read. */
export class Connections {
  readonly #stallMs: number;
  readonly #connections = new Map<Socket, Connection>();
  readonly #timer: NodeJS.Timeout;

  constructor(stallMs: number) {
    this.#stallMs = stallMs;
    this.#timer = setInterval(() => this.#checkAll(), stallMs / CHECKS_PER_STALL);
    this.#timer.unref();
  }

  /** Returns the connection of a socket, and tracks it from the first call on. Undefined if the socket is closed. */
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
