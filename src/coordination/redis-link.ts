import type { RedisKeys } from './keys.ts';
import type { LinkState } from './link-state.ts';
import type { Clock, Counters, RedisAccess, SharedPart } from './port.ts';
import { backOff, describeRedisError, NOT_CONNECTED, withDeadline } from './redis-calls.ts';
import { type RedisClient, RedisOpener } from './redis-clients.ts';

/** The time between checks while all parts work. A fault that no request meets is found within two seconds. */
const CHECK_MS = 1_000;

/** Time between checks while a part is away. */
const RECHECK_MS = 200;

/** How long a check may take. Requests wait for a shorter time, and a request that fails starts a check soon. */
const CHECK_WAIT_MS = 500;

/** Pauses between attempts to connect. The first is short, because Redis may only have closed a connection. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** What each part of the Redis side works with. */
export interface RedisSide {
  link: RedisLink;
  keys: RedisKeys;
  clock: Clock;
  counters: Counters;
}

/** A check of a part. Resolves if Redis serves the part, and rejects otherwise. */
export type Check = (client: RedisClient) => Promise<unknown>;

/** Called with each client once it is connected, and with `undefined` as soon as it is lost. */
type ClientListener = (client: RedisClient | undefined) => void;

/**
 * The process's client for commands. When its connection is lost, the link calls its listeners at once and opens a new
 * client at the current address. It checks every part regularly. A part that fails, in a check or by a call of `fail`,
 * is away until one of its checks succeeds.
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
      // The master has become a Redis replica, which refuses writes. It still accepts PUBLISH, but subscribers of the
      // new master do not receive the message. So find the new master at once.
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

  /** Adds a check of a part. It runs from the next connection on. */
  addCheck(part: SharedPart, check: Check): void {
    this.#checks.set(part, check);
  }

  onClient(listener: ClientListener): void {
    this.#listeners.push(listener);
  }

  /** Marks a part as away. The caller goes on without it until its check succeeds again. */
  fail(part: SharedPart, error: unknown): void {
    this.#state.set([part], false, describeRedisError(error));
    this.#schedule(RECHECK_MS);
  }

  /** Runs the checks at once, because a part may work again. */
  checkNow(): void {
    this.#schedule(0);
  }

  /** Connects, and reconnects whenever the connection is lost. */
  async connect(): Promise<void> {
    try {
      const client = await this.#opener.openClient(this.#attempt++);
      // The client may have ended since it was ready. Then no further event reports it.
      if (client.status !== 'ready') throw new Error('connection lost');
      if (this.#ended) client.disconnect();
      else this.#adopt(client);
    } catch (error) {
      this.#release(describeRedisError(error));
    }
  }

  /** Closes the connection and opens a new one, perhaps to another server. */
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
    clearTimeout(this.#timer);
    const pauseMs = backOff(this.#failures++, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    this.#timer = setTimeout(() => void this.connect(), pauseMs);
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
