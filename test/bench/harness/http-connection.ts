import { connect, type Socket } from 'node:net';

/** The response to one request. */
export interface HttpResponse {
  status: number;
  /** The size of head and body on the wire. */
  bytes: number;
  body: Buffer;
}

type Receive = (response: HttpResponse) => void;

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * One HTTP/1.1 keep-alive connection with one request at a time. It does as little as possible, so that measurements
 * show the server's work. It only understands responses with a content length.
 */
export class HttpConnection {
  readonly #port: number;
  #socket: Socket;
  #retriesLeft: number;
  #request: Buffer | undefined;
  #pending: Buffer | undefined;
  #receive: Receive | undefined;
  #fail: (error: Error) => void;

  /**
   * Opens the connection. If the connection ends before its first response, it is opened again and the request is sent
   * again, at most `retries` times.
   */
  constructor(port: number, onError: (error: Error) => void, retries = 0) {
    this.#port = port;
    this.#fail = onError;
    this.#retriesLeft = retries;
    this.#socket = this.#connect();
  }

  /** Sends a whole request. Calls `receive` with the response. */
  send(request: Buffer, receive: Receive): void {
    this.#receive = receive;
    this.#request = request;
    this.#socket.write(request);
  }

  close(): void {
    this.#fail = () => {};
    this.#retriesLeft = 0;
    this.#socket.destroy();
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    let error = new Error('the server closed the connection');
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (cause) => (error = cause));
    socket.on('close', () => {
      if (this.#retriesLeft === 0) return this.#fail(error);
      this.#retriesLeft -= 1;
      setTimeout(() => this.#reconnect(), 50 + 100 * Math.random());
    });
    return socket;
  }

  #reconnect(): void {
    this.#socket = this.#connect();
    if (this.#request !== undefined) this.#socket.write(this.#request);
  }

  #take(chunk: Buffer): void {
    const seen = this.#pending === undefined ? chunk : Buffer.concat([this.#pending, chunk]);
    const response = parseResponse(seen);
    this.#pending = response === undefined ? seen : undefined;
    if (response === undefined) return;
    this.#retriesLeft = 0;
    const receive = this.#receive!;
    this.#receive = undefined;
    receive(response);
  }
}

function parseResponse(seen: Buffer): HttpResponse | undefined {
  const headEnd = seen.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = seen.toString('latin1', 0, headEnd);
  const at = head.indexOf('ontent-'); // Content-Length, or content-length
  const length = /content-length: (\d+)/i.exec(at < 0 ? '' : head);
  if (length === null) throw new Error(`a response without a content length:\n${head}`);
  const bytes = headEnd + 4 + Number(length[1]);
  if (seen.length < bytes) return undefined;
  return { status: Number(head.slice(9, 12)), bytes, body: seen.subarray(headEnd + 4, bytes) };
}

/** Formats a POST request. */
export function formatRequest(path: string, body: string, token?: string): Buffer {
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n${authorization}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
