import { BookmarkClient, type ClientOptions } from '../../src/client/index.ts';
import { ManualClock } from './manual-clock.ts';

/** A request that the fake service has received. */
export interface Received {
  path: string;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any;
  text: string;
  /** The time of the request, in milliseconds of the manual clock. */
  atMs: number;
}

/** The service's reaction to a request. A function may throw, as `fetch` does when the connection is lost. */
export type Reply = Response | ((request: Received, signal: AbortSignal) => Response | Promise<Response>);

export const json = (body: object, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });

export const refusal = (code: string, status: number, headers: Record<string, string> = {}): Response =>
  json({ error: `as the service words ${code}`, code }, status, headers);

/** A lost connection, as `fetch` reports it: the reason is in `cause.code`. */
export const lose = (code: string) => (): Response => {
  throw new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
};

/** Never responds. Fails when the client cancels the request. */
export const hang = (_: Received, signal: AbortSignal): Promise<Response> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

/**
 * A service that responds with prepared responses, one after the other. Its clients have a clock that only the test
 * advances.
 */
export class FakeService {
  readonly clock = new ManualClock();
  readonly received: Received[] = [];
  readonly #replies: Reply[];

  constructor(...replies: Reply[]) {
    this.#replies = replies;
  }

  client(options: Partial<ClientOptions> = {}): BookmarkClient {
    const { clock } = this;
    return new BookmarkClient({
      baseUrl: 'http://service/api/v1',
      token: 'bka_1_token',
      clock,
      random: () => 0,
      fetch: async (url, init) => this.#response(String(url), init!),
      ...options,
    });
  }

  async #response(url: string, init: RequestInit): Promise<Response> {
    const request: Received = {
      path: url.replace('http://service/api/v1', ''),
      headers: new Headers(init.headers),
      body: JSON.parse(String(init.body)),
      text: String(init.body),
      atMs: this.clock.now(),
    };
    this.received.push(request);
    const reply = this.#replies.shift();
    if (reply === undefined) throw new Error(`no reply is left for ${request.path}`);
    return typeof reply === 'function' ? reply(request, init.signal!) : reply;
  }

  /** The time in ms between each request and the one before it. */
  get gapsMs(): number[] {
    return this.received.slice(1).map(({ atMs }, i) => atMs - this.received[i]!.atMs);
  }

  /** Advances the clock until the promise is settled. Resolves and rejects like the promise. */
  async run<T>(promise: Promise<T>, { stepMs = 10, limitMs = 3_600_000 } = {}): Promise<T> {
    let settled = false;
    const end = promise.finally(() => {
      settled = true;
    });
    end.catch(() => {});
    for (let passedMs = 0; passedMs <= limitMs; passedMs += stepMs) {
      await turn();
      if (settled) return end;
      this.clock.advance(stepMs);
    }
    throw new Error(`not settled after ${limitMs} ms`);
  }
}

/** Lets all pending callbacks run. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
