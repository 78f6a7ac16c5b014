import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { formatRequest } from './http-connection.ts';

/** Sends single requests with large bodies or large responses, and measures the time of each. */

export interface TimedResponse {
  status: number;
  text: string;
  ms: number;
}

/** Posts a body and reads the whole response. */
export async function postTimed(
  port: number,
  path: string,
  token: string,
  body: Buffer,
): Promise<TimedResponse> {
  const startedAt = performance.now();
  const sent = request({
    port,
    path,
    host: '127.0.0.1',
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const answered = await text(response);
  return { status: response.statusCode, text: answered, ms: performance.now() - startedAt };
}

/**
 * Sends a request and counts the bytes of the response. Rejects if the status is not 200 or the response is incomplete.
 */
export async function drainTimed(
  port: number,
  path: string,
  token: string,
): Promise<{ bytes: number; ms: number }> {
  const startedAt = performance.now();
  const socket = connect(port, '127.0.0.1');
  socket.write(formatRequest(path, '{}', token));
  let bytes = 0;
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    if (bytes === 0 && !chunk.toString('latin1', 0, 12).endsWith('200')) throw new Error(chunk.toString());
    bytes += chunk.length;
    tail = chunk.length >= 8 ? chunk.subarray(-8) : Buffer.concat([tail, chunk]).subarray(-8);
    if (tail.toString('latin1').endsWith('0\r\n\r\n')) return { bytes, ms: performance.now() - startedAt };
  }
  throw new Error(`${path} broke off after ${bytes} bytes`);
}
