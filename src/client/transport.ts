import type { ErrorCode } from '../domain/resources.ts';
import { type Deadline, startDeadline } from './deadline.ts';
import { ApiError, describeConnectionFailure } from './errors.ts';
import type { Clock } from './timing.ts';

/** What one attempt of a request sends. All attempts of a request have the same body. */
export interface Sending {
  url: string;
  headers: Record<string, string>;
  body: string;
  requestId: string;
  /** The attempt fails with `TIMEOUT` after this time without progress, in ms. */
  timeoutMs: number;
  signal: AbortSignal | undefined;
  onUpload: OnUpload | undefined;
}

export type OnUpload = (bytes: number, total: number) => void;

interface Transport {
  fetch: typeof fetch;
  clock: Clock;
}

/** A response whose headers have arrived. The body may still be on its way. */
export interface OpenResponse {
  headers: Headers;
  /** The body's chunks. Read all chunks, or call `return`. If the body is truncated, reading throws an `ApiError`. */
  chunks: AsyncGenerator<Uint8Array, void, undefined>;
}

/**
 * Sends a request once, without retries. Calls `onHeaders` with the headers of any response. Resolves if the response
 * is a success. Rejects with an `ApiError` or the signal's reason.
 */
export async function openRequest(
  { fetch, clock }: Transport,
  sending: Sending,
  onHeaders: (headers: Headers) => void,
): Promise<OpenResponse> {
  const deadline = startDeadline(clock, sending.timeoutMs, sending.signal);
  try {
    const { url } = sending;
    const response = await fetch(url, {
      method: 'POST',
      ...describeBody(sending, deadline),
      signal: deadline.signal,
      // The service never redirects. A redirect must not carry a token or an invite code to another origin.
      redirect: 'error',
    });
    deadline.extend();
    onHeaders(response.headers);
    const chunks = readChunks(response, sending, deadline);
    if (response.ok) return { headers: response.headers, chunks };
    throw toApiError(response, await readText(chunks), sending);
  } catch (error) {
    deadline.end();
    throw describeFailure(error, sending, deadline);
  }
}

const UPLOAD_CHUNK_BYTES = 65_536;

/**
 * Returns the options of `fetch` for the body. With `onUpload`, the body is a stream that reports its progress and
 * extends the deadline.
 */
function describeBody({ headers, body, onUpload }: Sending, deadline: Deadline): UploadInit {
  if (onUpload === undefined) return { headers, body };
  const bytes = new TextEncoder().encode(body);
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
    // `fetch` calls this each time it can take another chunk.
    pull(controller) {
      deadline.extend();
      onUpload(sent, bytes.length);
      if (sent === bytes.length) return controller.close();
      const chunk = bytes.slice(sent, sent + UPLOAD_CHUNK_BYTES);
      sent += chunk.length;
      controller.enqueue(chunk);
    },
  });
  return {
    headers: { ...headers, 'content-length': String(bytes.length) },
    body: stream,
    duplex: 'half',
    // With credentials, `fetch` would hide a 401 response to a streamed body. After a 401, it would try to sign in and
    // to send the body again, but it cannot send a stream twice.
    credentials: 'omit',
  };
}

/** `fetch` requires `duplex` for a streamed body. The types of some runtimes lack it. */
type UploadInit = RequestInit & { duplex?: 'half' };

async function* readChunks(
  response: Response,
  sending: Sending,
  deadline: Deadline,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = response.body?.getReader();
  try {
    for (;;) {
      const result = await reader?.read();
      if (result === undefined || result.done) return;
      deadline.extend();
      yield result.value;
    }
  } catch (error) {
    throw describeFailure(error, sending, deadline);
  } finally {
    deadline.end();
    await reader?.cancel().catch(() => {});
  }
}

/** Reads the whole body as text. */
async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Reads the whole body as JSON. An incomplete body counts as a lost connection. */
export async function readJson<T>(chunks: AsyncIterable<Uint8Array>, requestId: string): Promise<T> {
  const text = await readText(chunks);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ApiError('the response is incomplete', { code: 'CONNECTION_LOST', requestId, cause });
  }
}

/**
 * Returns the error to throw after a failed `fetch` or read: the reason of the caller's signal, or an `ApiError` for a
 * timeout, a redirect or a lost connection.
 */
function describeFailure(
  error: unknown,
  { url, signal, requestId, timeoutMs }: Sending,
  deadline: Deadline,
): unknown {
  if (error instanceof ApiError) return error;
  if (deadline.isExpired) {
    return new ApiError(`${url}: no response within ${timeoutMs} ms`, { code: 'TIMEOUT', requestId });
  }
  if (signal?.aborted) return signal.reason;
  // In Node, only the message of the cause says that there was a redirect. Browsers report a redirect like a lost
  // connection.
  if (error instanceof Error && error.cause instanceof Error && /redirect/.test(error.cause.message))
    return new ApiError(`${url}: the address redirects to another one`, {
      code: 'UNEXPECTED_ANSWER',
      requestId,
    });
  const failure = { code: 'CONNECTION_LOST', requestId, cause: error } as const;
  const reason = describeConnectionFailure(error);
  return new ApiError(`${url}: the connection was lost or could not be made${reason}`, failure);
}

const CODES: readonly ErrorCode[] = [
  'VALIDATION_ERROR',
  'INVALID_TOKEN',
  'ACCOUNT_SUSPENDED',
  'PERMISSION_DENIED',
  'LIMIT_EXCEEDED',
  'NOT_FOUND',
  'CONFLICT',
  'RATE_LIMITED',
  'INTERNAL_ERROR',
  'UNAVAILABLE',
];

function toApiError({ status, headers }: Response, text: string, sending: Sending): ApiError {
  const { error, code } = parseErrorBody(text) ?? {
    error: `${sending.url}: ${status === 404 ? UNKNOWN_PATH : `unexpected response with status ${status}`}`,
    code: 'UNEXPECTED_ANSWER' as const,
  };
  return new ApiError(error, {
    code,
    status,
    retryAfterSeconds: readRetryAfter(headers),
    requestId: headers.get('x-request-id') ?? sending.requestId,
  });
}

/** The error of the service for an unknown path. */
const UNKNOWN_PATH = 'the path does not exist';

/** Parses the body of an error response. Returns undefined for a body that no endpoint of the service sends. */
function parseErrorBody(text: string): { error: string; code: ErrorCode } | undefined {
  try {
    const { error, code: receivedCode } = JSON.parse(text);
    const code = CODES.find((known) => known === receivedCode);
    const isOfEndpoint = typeof error === 'string' && error !== UNKNOWN_PATH && code !== undefined;
    return isOfEndpoint ? { error, code } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the seconds that `Retry-After` asks for. The service sends a number of seconds. Proxies may send a date,
 * which is compared with the response's `Date`.
 */
function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const seconds = (Date.parse(text) - Date.parse(headers.get('date') ?? '')) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}
