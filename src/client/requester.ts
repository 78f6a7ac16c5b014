import { REQUEST_KINDS } from '../domain/request-kinds.ts';
import type { Endpoints } from '../domain/resources.ts';
import { DEFAULT_WAITS, longestImport } from '../domain/waits.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { ApiError } from './errors.ts';
import { Quota } from './quota.ts';
import { retryDelayMs } from './retry.ts';
import { type Clock, sleep, systemClock, type Timing } from './timing.ts';
import { type OnUpload, type OpenResponse, openRequest, readJson, type Sending } from './transport.ts';

export type Path = keyof Endpoints;

/** Describes a request that is about to be sent again. */
export interface RetryEvent {
  path: Path;
  error: ApiError;
  /** How many times this request has failed in a row. */
  failures: number;
  /** The time until it is sent again. */
  waitMs: number;
}

export interface RequestOptions {
  /** Aborting this signal cancels the request, its waits and its retries. The call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /**
   * An attempt fails with `TIMEOUT` after this time without progress, in ms. The client adds the longest wait of the
   * service: 30 s for a poll with `wait`, `wait_seconds` for a poll with that field, and 360 s for an import.
   */
  timeoutMs?: number | undefined;
  /** How long a failed request is retried, in ms from the first failure. 0 disables retries. */
  retryForMs?: number | undefined;
  /**
   * How long a request that gets no response is retried, in ms from its start. Default: `retryForMs` alone decides.
   */
  unreachableForMs?: number | undefined;
  /** Returns whether an error is final. The request is then not retried. Default: the client decides. */
  isFinal?: ((error: ApiError) => boolean) | undefined;
  /** Called with the number of bytes of the body sent so far, and the length of the body. Not supported in browsers. */
  onUpload?: OnUpload | undefined;
  /**
   * Whether the request is less urgent than others. It then waits for other requests of this client, and while fewer
   * than 40 requests of the quota are left. Default: false.
   */
  isInBackground?: boolean | undefined;
  /** Called with the headers of each response, also if the request is then retried. */
  onHeaders?: ((headers: Headers) => void) | undefined;
}

export interface KeyedOptions extends RequestOptions {
  /**
   * Makes repeats of a request harmless for 24 hours, even if another process sends them. Up to 255 visible ASCII
   * characters. By default, each call of a method with this option gets a random key. Only revocations get none: a
   * write with a key waits for the account's other writes, and a revocation should not wait.
   */
  idempotencyKey?: string | undefined;
}

/** Options that make the client retry a request forever. */
export const WITHOUT_END = { retryForMs: Number.POSITIVE_INFINITY };

/**
 * How long a request may be repeated with the same `Idempotency-Key`. The service keeps keys for 24 hours. The client
 * stops one hour earlier, so that the last repeat still arrives in time.
 */
export const KEY_LIFE_MS = 23 * 3_600_000;

export interface ClientOptions {
  /**
   * The address of the service: `https://bookmarks.example.org`, or with the path of the API if it has another one than
   * `/api/v1`.
   */
  baseUrl: string;
  /** A session token or an API token. `exchangeInvite`, `exchangeDeviceCode` and `exchangeCode` need none. */
  token?: string | undefined;
  /**
   * An attempt fails with `TIMEOUT` after this time without progress, in ms. Default: 30,000. The client adds the
   * longest wait of the service: 30 s for a poll with `wait`, `wait_seconds` for a poll with that field, and 360 s for
   * an import.
   */
  timeoutMs?: number | undefined;
  /**
   * How long a failed request is retried if a repeat is safe, in ms from the first failure. Default: 120,000. 0
   * disables retries.
   */
  retryForMs?: number | undefined;
  /** Called before each wait for a retry. */
  onRetry?: ((event: RetryEvent) => void) | undefined;
  /** Called before a request waits because the token's quota is used up. */
  onQuotaWait?: ((waitMs: number) => void) | undefined;
  /** Default: the platform's `fetch`. */
  fetch?: typeof fetch | undefined;
  clock?: Clock | undefined;
  /** Returns a number from 0 up to but not including 1, for jitter. */
  random?: (() => number) | undefined;
}

/** True if the token is visible ASCII, so that a header can carry it. Every token of the service is visible ASCII. */
export const isSendable = (token: string): boolean => /^[\x21-\x7e]+$/.test(token);

/**
 * Parses the address of a service. Adds `/api/v1` to an address without a path, and removes slashes at the end. Throws
 * a `TypeError` for any other text. Without this check, each request would fail like a lost connection and be retried.
 */
export function parseBaseUrl(baseUrl: string): string {
  const url = parseWebUrl(baseUrl);
  if (url === null) throw new TypeError('baseUrl: expected an http or https url');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl: expected no user, password, query or fragment');
  return url.origin + (url.pathname.replace(/\/+$/, '') || '/api/v1');
}

/**
 * Returns how long the service may take before it responds, in ms. The service holds a poll with `wait` for up to 29 s.
 */
function holdMs(path: Path, body: object): number {
  if (path === '/import') return longestImport(DEFAULT_WAITS) * 1_000;
  if (REQUEST_KINDS[path] !== 'poll') return 0;
  if ('wait_seconds' in body && typeof body.wait_seconds === 'number') return body.wait_seconds * 1_000;
  return 'wait' in body && body.wait === true ? 30_000 : 0;
}

/** Returns the header with the caller's key, or with a random key if the endpoint's requests always carry one. */
function keyHeader(path: Path, callersKey: string | undefined): Record<string, string> {
  const key = callersKey ?? (REQUEST_KINDS[path] === 'keyed' ? randomId() : undefined);
  return key === undefined ? {} : { 'idempotency-key': key };
}

/** The parts of a request that are the same in all attempts. */
type Prepared = Pick<Sending, 'url' | 'body' | 'headers' | 'timeoutMs'>;

/**
 * The body of the response to a request. The edit or deletion of one bookmark (`id`) has a different response from the
 * edit or deletion of several. So has the rename of a tag by its id.
 */
type Answer<P extends Path, Body> = P extends '/bookmarks/edit' | '/bookmarks/delete' | '/tags/update'
  ? Body extends { id: number }
    ? Exclude<Endpoints[P]['response'], OfSeveral>
    : Extract<Endpoints[P]['response'], OfSeveral>
  : Endpoints[P]['response'];

type OfSeveral = { count: number } | { renamed: number };

/** Sends requests within the quota and with a timeout. Retries the requests that are safe to repeat. */
export class Requester {
  readonly timing: Timing;
  readonly #options: ClientOptions & { fetch: typeof fetch; timeoutMs: number; retryForMs: number };
  readonly #quota: Quota;

  constructor(options: ClientOptions) {
    const { token } = options;
    if (token !== undefined && !isSendable(token))
      throw new TypeError('token: expected visible ASCII characters');
    this.timing = { clock: options.clock ?? systemClock, random: options.random ?? Math.random };
    this.#options = {
      ...options,
      baseUrl: parseBaseUrl(options.baseUrl),
      // Browsers refuse a `fetch` that is called as a method of another object.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      timeoutMs: options.timeoutMs ?? 30_000,
      retryForMs: options.retryForMs ?? 120_000,
    };
    this.#quota = new Quota(this.timing.clock, options.onQuotaWait);
  }

  /**
   * Sends a request, and retries it if that is safe. Resolves with the body of the response. Rejects with an `ApiError`
   * or the signal's reason.
   */
  request<P extends Path, Body extends Endpoints[P]['request']>(
    path: P,
    body: Body,
    options: KeyedOptions = {},
  ): Promise<Answer<P, Body>> {
    const prepared = this.#prepare(path, body, options);
    return this.#sendWithRetries(path, options, prepared, ({ chunks }, requestId) =>
      readJson<Answer<P, Body>>(chunks, requestId),
    );
  }

  /** Sends a request and resolves when the response begins. If the body is truncated later, it does not retry. */
  open(path: Path, body: object, options: RequestOptions = {}): Promise<OpenResponse> {
    const prepared = this.#prepare(path, body, options);
    return this.#sendWithRetries(path, options, prepared, async (response) => response);
  }

  #prepare(path: Path, body: object, { idempotencyKey, timeoutMs }: KeyedOptions): Prepared {
    const { baseUrl, token } = this.#options;
    return {
      url: baseUrl + path,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && REQUEST_KINDS[path] !== 'public' && { authorization: `Bearer ${token}` }),
        ...keyHeader(path, idempotencyKey),
      },
      timeoutMs: (timeoutMs ?? this.#options.timeoutMs) + holdMs(path, body),
    };
  }

  async #sendWithRetries<T>(
    path: Path,
    options: RequestOptions,
    prepared: Prepared,
    read: (response: OpenResponse, requestId: string) => Promise<T>,
  ): Promise<T> {
    const { signal, onUpload, onHeaders, isInBackground, unreachableForMs, isFinal } = options;
    const { retryForMs = this.#options.retryForMs } = options;
    const { clock, random } = this.timing;
    const { fetch, onRetry } = this.#options;
    const callId = randomId();
    const isKeyed = 'idempotency-key' in prepared.headers || REQUEST_KINDS[path] === 'batch';
    const isRepeatable = isKeyed || ['read', 'poll'].includes(REQUEST_KINDS[path]);
    const startedMs = Date.now();
    const unreachableUntilMs = clock.now() + (unreachableForMs ?? Number.POSITIVE_INFINITY);
    let firstFailureMs: number | undefined;
    for (let attempt = 1; ; attempt += 1) {
      // The service logs this id. So an operator can find the attempt in the log even if its response was lost.
      const requestId = `${callId}.${attempt}`;
      const headers = { ...prepared.headers, 'x-request-id': requestId };
      try {
        const quotaNumber =
          REQUEST_KINDS[path] === 'public' ? undefined : await this.#quota.admit(signal, isInBackground);
        const readHeaders = (received: Headers) => {
          if (quotaNumber !== undefined) this.#quota.read(quotaNumber, received);
          onHeaders?.(received);
        };
        const response = await openRequest(
          { fetch, clock },
          { ...prepared, headers, requestId, signal, onUpload },
          readHeaders,
        );
        return await read(response, requestId);
      } catch (error) {
        if (!(error instanceof ApiError) || isFinal?.(error)) throw error;
        // All attempts so far have failed.
        const failures = attempt;
        const waitMs = retryDelayMs(error, failures, isRepeatable, random);
        firstFailureMs ??= clock.now();
        const untilMs = firstFailureMs + retryForMs;
        // The status is 0 if there was no response.
        const limitMs = error.status === 0 ? Math.min(untilMs, unreachableUntilMs) : untilMs;
        if (waitMs === undefined || clock.now() + waitMs > limitMs) throw error;
        onRetry?.({ path, error, failures, waitMs });
        await sleep(clock, waitMs, signal);
        // Uses the wall clock: the key also expires while the computer sleeps, and `clock` may stop during that time.
        if (isKeyed && Date.now() - startedMs >= KEY_LIFE_MS) throw error;
      }
    }
  }
}

/** Returns bytes as lower-case hexadecimal digits. */
export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Returns 128 random bits as 32 hexadecimal digits. Also works on pages without TLS, unlike `crypto.randomUUID`. */
export function randomId(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(16)));
}
