import type { Endpoints } from '../domain/resources.ts';
import type { ApiError } from './errors.ts';
import { Quota } from './quota.ts';
import { retryDelayMs } from './retry.ts';
import { type Clock, sleep } from './timing.ts';
import { type OpenAnswer, openRequest, readJson, type Sending } from './transport.ts';

export type Path = keyof Endpoints;

/** A request is about to be sent again. */
export interface RetryEvent {
  path: Path;
  error: ApiError;
  /** Failures of this request in a row. */
  failures: number;
  waitMs: number;
}

export interface RequestOptions {
  /** Ends the request, its waits and its retries; it rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Longest time without progress, in ms; what the service may hold a request for is added. */
  timeoutMs?: number | undefined;
  /** How long failures are retried, in ms from the first one; 0: not at all. */
  retryForMs?: number | undefined;
  /** Told of the bytes of the answer so far. */
  onProgress?: ((bytes: number) => void) | undefined;
}

export interface KeyedOptions extends RequestOptions {
  /**
   * Makes a repeat of the same request harmless for 24 hours, from another process too: up to 255 visible ASCII
   * characters. One is made for each call where none is given.
   */
  idempotencyKey?: string | undefined;
}

/** What requests need, complete. */
export interface RequesterParts {
  baseUrl: string;
  token: string | undefined;
  fetch: typeof fetch;
  clock: Clock;
  random: () => number;
  timeoutMs: number;
  retryForMs: number;
  onRetry: ((event: RetryEvent) => void) | undefined;
}

/** Public: limited by address, so that its answers tell nothing of the token's quota. */
const PUBLIC: ReadonlySet<Path> = new Set<Path>(['/auth/invite']);

/** Doing these twice is doing them once. */
const READS: ReadonlySet<Path> = new Set<Path>([
  '/user/profile',
  '/bookmarks/search',
  '/bookmarks/list',
  '/bookmarks/sync',
  '/bookmarks/changes',
  '/tags/list',
  '/export',
]);

/** May be held for something new. */
const POLLS: ReadonlySet<Path> = new Set<Path>(['/bookmarks/sync', '/bookmarks/changes']);

/** Do their work once for each `Idempotency-Key`, and answer every repeat as the first time. */
const KEYED: ReadonlySet<Path> = new Set<Path>(['/bookmarks/add', '/tags/create', '/import']);

/** How long the service may work or wait before it answers: 30 s in a poll, 2 minutes in a large import and as long to take it in. */
function holdMs(path: Path, body: object): number {
  if (path === '/import') return 240_000;
  return POLLS.has(path) && 'wait' in body && body.wait === true ? 30_000 : 0;
}

/** What every attempt sends alike. */
type Prepared = Pick<Sending, 'url' | 'body' | 'headers' | 'timeoutMs'>;

/** Sends requests: in the quota's bounds, in time, and again where that is safe. */
export class Requester {
  readonly #parts: RequesterParts;
  readonly #quota: Quota;

  constructor(parts: RequesterParts) {
    this.#parts = parts;
    this.#quota = new Quota(parts.clock);
  }

  /** The answer's body; rejects with an `ApiError`, or with the signal's reason. */
  request<P extends Path>(
    path: P,
    body: Endpoints[P]['request'],
    options: KeyedOptions = {},
  ): Promise<Endpoints[P]['response']> {
    return this.#repeat(path, options, this.#prepare(path, body, options), ({ chunks }, requestId) =>
      readJson<Endpoints[P]['response']>(chunks, requestId),
    );
  }

  /** The answer as it comes. What breaks off later is the caller's to begin anew. */
  open(path: Path, body: object, options: RequestOptions = {}): Promise<OpenAnswer> {
    return this.#repeat(path, options, this.#prepare(path, body, options), async (answer) => answer);
  }

  #prepare(path: Path, body: object, { idempotencyKey, timeoutMs }: KeyedOptions): Prepared {
    const { baseUrl, token } = this.#parts;
    return {
      url: baseUrl + path,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && !PUBLIC.has(path) && { authorization: `Bearer ${token}` }),
        ...(KEYED.has(path) && { 'idempotency-key': idempotencyKey ?? randomId() }),
      },
      timeoutMs: (timeoutMs ?? this.#parts.timeoutMs) + holdMs(path, body),
    };
  }

  async #repeat<T>(
    path: Path,
    { signal, onProgress, retryForMs = this.#parts.retryForMs }: RequestOptions,
    same: Prepared,
    read: (answer: OpenAnswer, requestId: string) => Promise<T>,
  ): Promise<T> {
    const { clock, random, onRetry } = this.#parts;
    const callId = randomId();
    const isRepeatable = READS.has(path) || KEYED.has(path);
    let firstFailureMs: number | undefined;
    for (let failures = 1; ; failures += 1) {
      // The service logs it, so that an attempt whose answer was lost can be found there.
      const requestId = `${callId}.${failures}`;
      const headers = { ...same.headers, 'x-request-id': requestId };
      try {
        const number = PUBLIC.has(path) ? undefined : await this.#quota.admit(signal);
        const hear = (answered: Headers) => number !== undefined && this.#quota.hear(number, answered);
        const answer = await openRequest(
          this.#parts,
          { ...same, headers, requestId, signal, onProgress },
          hear,
        );
        return await read(answer, requestId);
      } catch (error) {
        const waitMs = retryDelayMs(error, failures, isRepeatable, random);
        firstFailureMs ??= clock.now();
        if (waitMs === undefined || clock.now() + waitMs > firstFailureMs + retryForMs) throw error;
        onRetry?.({ path, error: error as ApiError, failures, waitMs });
        await sleep(clock, waitMs, signal);
      }
    }
  }
}

/** 128 random bits as 32 hexadecimal digits. Unlike `crypto.randomUUID` it exists on pages without TLS too. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
