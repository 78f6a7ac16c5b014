import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { ErrorCode } from '../../src/domain/resources.ts';
import { STATUS_BY_CODE } from '../../src/http/error-responses.ts';
import { BASE_PATH } from '../../src/http/mount.ts';
import { ROUTES } from '../../src/routes/app.ts';

/** A response of the service. */
export interface ApiResponse {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
  body: any;
}

/** Reads a whole response. `body` is undefined if it is not JSON. Rejects if the response is cut off. */
export async function readResponse(response: Response): Promise<ApiResponse> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const { status, headers } = response;
  return { status, headers, text, body: isJson && text !== '' ? JSON.parse(text) : undefined };
}

const schemaByPath = new Map(ROUTES.map((route) => [route.path, route.response]));

/** Longer texts are not compared with the schema of the response, because that would take seconds. */
const LONGEST_COMPARED = 2_000_000;

/**
 * Fails unless a response follows the rules for all responses. Every response must be JSON and have a request id. A
 * successful response must have exactly the fields of the API reference. An error must have the form that all errors
 * have, and the status of its code (section 7, decision 2).
 */
export function checkResponse(path: string, { status, headers, text, body }: ApiResponse): void {
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8');
  assert.ok(headers.get('x-request-id'), 'X-Request-Id');
  if (status !== 200) {
    assert.deepEqual(Object.keys(body), ['error', 'code']);
    assert.match(body.error, /./);
    assert.equal(status, STATUS_BY_CODE[body.code as ErrorCode], body.code);
    return;
  }
  const schema = schemaByPath.get(path);
  assert.ok(schema, `${BASE_PATH}${path} responds with 200, but no route has this path`);
  if (text.length <= LONGEST_COMPARED) assert.deepEqual(schema.parse(body), body);
}

/** A plain connection, for bytes that no client library would send. */
export interface RawConnection {
  /** Resolves when the operating system has accepted the bytes. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Returns all responses. Resolves when the server has ended the connection. */
  responses(): Promise<ApiResponse[]>;
  destroy(): void;
}

/** Opens a connection to a service. */
export function connectTo(origin: string): RawConnection {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const received: Buffer[] = [];
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('data', (bytes: Buffer) => received.push(bytes));
  // Ignores a reset. The responses that arrived before it still count.
  socket.on('error', () => {});
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        socket.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
    async responses() {
      await ended;
      return parseResponses(Buffer.concat(received));
    },
    destroy: () => socket.destroy(),
  };
}

/** Sends bytes on a new connection. Resolves with the first response when the server has ended the connection. */
export async function sendRaw(origin: string, bytes: string | Uint8Array): Promise<ApiResponse> {
  const connection = connectTo(origin);
  await connection.write(bytes);
  const [response] = await connection.responses();
  assert.ok(response, 'the connection was ended without a response');
  return response;
}

function parseResponses(bytes: Buffer): ApiResponse[] {
  const responses: ApiResponse[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const headEnd = rest.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = rest.subarray(0, headEnd).toString('latin1').split('\r\n');
    const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]));
    const bodyEnd = headEnd + 4 + Number(headers.get('content-length') ?? 0);
    const text = rest.subarray(headEnd + 4, bodyEnd).toString('utf8');
    const status = Number(statusLine.split(' ')[1]);
    responses.push({ status, headers, text, body: text === '' ? undefined : JSON.parse(text) });
    rest = rest.subarray(bodyEnd);
  }
  return responses;
}
