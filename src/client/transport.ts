import type { ErrorCode } from '../domain/resources.ts';
import { type Deadline, startDeadline } from './deadline.ts';
import { ApiError } from './errors.ts';
import type { Clock } from './timing.ts';

/** One request as it is sent. Sending it again sends the same bytes. */
export interface Sending {
  url: string;
  headers: Record<string, string>;
  body: string;
  requestId: string;
  /** The longest time without progress. */
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** Called with the number of bytes of the response so far. */
  onProgress: ((bytes: number) => void) | undefined;
  onUpload: OnUpload | undefined;
}

export type OnUpload = (bytes: number, total: number) => void;

interface Transport {
  fetch: typeof fetch;
  clock: Clock;
}

/** A response whose body is still to come. */
export interface OpenResponse {
  headers: Headers;
  /** The pieces of the body; throws an `ApiError` where it breaks off. Read it to its end, or call `return`. */
  chunks: AsyncGenerator<Uint8Array, void, undefined>;
}

/**
 * Sends a request once, without retries. Calls `onHeaders` with the headers of any response; resolves with a success,
 * rejects with an `ApiError` or the signal's reason.
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
      // The service redirects nobody: a token or an invite code must not follow to another origin.
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

/** The body in one piece, or in chunks whose progress is reported and extends the deadline. */
function describeBody({ headers, body, onUpload }: Sending, deadline: Deadline): UploadInit {
  if (onUpload === undefined) return { headers, body };
  const bytes = new TextEncoder().encode(body);
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
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
    // The standard has `fetch` with credentials hide a 401 to a stream, which it could not send again.
    credentials: 'omit',
  };
}

/** `duplex` is not among the types of every runtime. */
type UploadInit = RequestInit & { duplex?: 'half' };

async function* readChunks(
  response: Response,
  sending: Sending,
  deadline: Deadline,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = response.body?.getReader();
  let bytes = 0;
  try {
    for (;;) {
      const piece = await reader?.read();
      if (piece === undefined || piece.done) return;
      deadline.extend();
      bytes += piece.value.length;
      sending.onProgress?.(bytes);
      yield piece.value;
    }
  } catch (error) {
    throw describeFailure(error, sending, deadline);
  } finally {
    deadline.end();
    await reader?.cancel().catch(() => {});
  }
}

/** The whole body as text. */
export async function readText(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** The whole body as JSON. Where it is not complete, the connection was lost. */
export async function readJson<T>(chunks: AsyncIterable<Uint8Array>, requestId: string): Promise<T> {
  const text = await readText(chunks);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ApiError('the response is not complete', { code: 'CONNECTION_LOST', requestId, cause });
  }
}

/** Makes an error of a failed `fetch` or read: the caller's abort, a timeout or a lost connection. */
function describeFailure(
  error: unknown,
  { signal, requestId, timeoutMs }: Sending,
  deadline: Deadline,
): unknown {
  if (error instanceof ApiError) return error;
  if (deadline.isExpired) {
    return new ApiError(`no response within ${timeoutMs} ms`, { code: 'TIMEOUT', requestId });
  }
  if (signal?.aborted) return signal.reason;
  if (/redirect/.test(String(((error as Error).cause as Error | undefined)?.message)))
    return new ApiError('the address redirects elsewhere', { code: 'UNEXPECTED_ANSWER', requestId });
  return new ApiError('the connection was lost or could not be made', {
    code: 'CONNECTION_LOST',
    requestId,
    cause: error,
  });
}

const CODES: ReadonlySet<string> = new Set<ErrorCode>([
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
]);

function toApiError(response: Response, text: string, sending: Sending): ApiError {
  const { status, headers } = response;
  const { error, code } = parseErrorBody(text);
  const isKnown = code !== undefined && CODES.has(code);
  return new ApiError(isKnown && error !== undefined ? error : `unexpected response with status ${status}`, {
    code: isKnown ? (code as ErrorCode) : 'UNEXPECTED_ANSWER',
    status,
    retryAfterSeconds: readRetryAfter(headers),
    requestId: headers.get('x-request-id') ?? sending.requestId,
  });
}

function parseErrorBody(text: string): { error?: string; code?: string } {
  try {
    const body = JSON.parse(text);
    return typeof body?.error === 'string' && typeof body.code === 'string' ? body : {};
  } catch {
    return {};
  }
}

/** Whole seconds, as the service sends them, or a date, as proxies may send it. */
function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const seconds = (Date.parse(text) - Date.parse(headers.get('date') ?? '')) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}
