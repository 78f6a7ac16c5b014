import type { LinkState } from './link-state.ts';
import type { RedisAccess, SharedPart } from './port.ts';
import { describeRedisError, NOT_CONNECTED, withDeadline } from './redis-calls.ts';
import { type RedisClient, RedisOpener } from './redis-clients.ts';

/** Pace of the checks while all is well; with what a check may take, a fault that nothing else shows is known in 2 s. */
const CHECK_MS = 1_000;

/** Pace of the checks while a part is away. */
const RECHECK_MS = 200;

/** How long a check may take. Requests wait less: what they see failing is checked at once. */
const CHECK_WAIT_MS = 500;

/** Pauses between attempts to connect: the first is short, for a restart or a killed connection. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** Resolves if Redis does for a part what it is there for. */
export type Check = (client: RedisClient) => Promise<unknown>;

/** Takes each client once it is connected, and `undefined` as soon as it is lost. */
export type ClientListener = (client: RedisClient | undefined) => void;

/**
 * The process's client for commands. When it is lost all its users know at once, and the next one is opened, where the
 * address leads by then. Checks of each part run all the time; they alone find a part served, and whoever finds it
 * failing says so.
 */
export class RedisLink {
  readonly #opener: RedisOpener;
  readonly #state: LinkState;
  readonly #checks = new Map<SharedPart, Check>();
  readonly #listeners: ClientListener[] = [];
  #client: RedisClient | undefined;
  #attempt = 0;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(access: RedisAccess, state: LinkState) {
    this.#opener = new RedisOpener(access, ({ message }) => {
      // A master became a replica: what is published to it goes no further, though it says so of writes alone.
      if (message.startsWith('READONLY')) this.reconnect('READONLY');
    });
    this.#state = state;
  }

  /** The client, while it is connected. */
  get client(): RedisClient | undefined {
    return this.#client;
  }

  get opener(): RedisOpener {
    return this.#opener;
  }

  serves(part: SharedPart): boolean {
    return this.#state.serves(part);
  }

  /** Has a part checked from the next connection on. */
  addCheck(part: SharedPart, check: Check): void {
    this.#checks.set(part, check);
  }

  onClient(listener: ClientListener): void {
    this.#listeners.push(listener);
  }

  /** Says that a part failed. The caller goes on without it; the next check that succeeds finds it served again. */
  fail(part: SharedPart, error: unknown): void {
    this.#state.set([part], false, describeRedisError(error));
    this.#schedule(RECHECK_MS);
  }

  /** Runs the checks at once, for something may be served from now on. */
  checkNow(): void {
    this.#schedule(0);
  }

  /** Connects, and again whenever the connection is lost. */
  async connect(): Promise<void> {
    try {
      const client = await this.#opener.openClient(this.#attempt++);
      // It may have ended since it was ready: then no event comes any more that says so.
      if (client.status !== 'ready') throw new Error('connection lost');
      if (this.#ended) client.disconnect();
      else this.#adopt(client);
    } catch (error) {
      this.#release(describeRedisError(error));
    }
  }

  /** Gives the connection up for a new one, perhaps to another server. */
  reconnect(reason: string): void {
    this.#client?.disconnect();
    if (this.#client) this.#release(reason);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#client?.disconnect();
    this.#opener.end();
  }

  #adopt(client: RedisClient): void {
    this.#client = client;
    this.#failures = 0;
    let reason = 'connection lost';
    client.on('error', (error: Error) => {
      reason = describeRedisError(error);
    });
    for (const event of ['close', 'end']) {
      client.once(event, () => {
        if (client === this.#client) this.#release(reason);
      });
    }
    for (const listener of this.#listeners) listener(client);
    this.#schedule(0);
  }

  #release(reason: string): void {
    const hadClient = this.#client !== undefined;
    this.#client = undefined;
    this.#state.set(this.#checks.keys(), false, reason);
    if (hadClient) for (const listener of this.#listeners) listener(undefined);
    if (this.#ended) return;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, MAX_PAUSE_MS);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.connect(), pauseMs * (0.75 + Math.random() / 2));
    this.#timer.unref();
  }

  #schedule(pauseMs: number): void {
    if (this.#ended || this.#client === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#runChecks(), pauseMs);
    this.#timer.unref();
  }

  async #runChecks(): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    const checks = [...this.#checks].map(([part, check]) => this.#runCheck(client, part, check));
    const [hasMoved] = await Promise.all([this.#opener.hasMoved(client), ...checks]);
    if (client !== this.#client) return;
    if (hasMoved) this.reconnect('the master is elsewhere');
    else this.#schedule(this.#state.isShared ? CHECK_MS : RECHECK_MS);
  }

  async #runCheck(client: RedisClient, part: SharedPart, check: Check): Promise<void> {
    const fault = await withDeadline(check(client), CHECK_WAIT_MS).then(
      () => undefined,
      (error: unknown) => describeRedisError(error),
    );
    if (client === this.#client) this.#state.set([part], fault === undefined, fault ?? NOT_CONNECTED);
  }
}
