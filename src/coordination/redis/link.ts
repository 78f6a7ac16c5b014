import type { Clock, Counters, RedisAccess, SharedPart } from '../port.ts';
import { backOff, describeRedisError, NOT_CONNECTED, withDeadline } from './calls.ts';
import { type RedisClient, type RedisClients, RedisOpener } from './clients.ts';
import type { RedisKeys } from './keys.ts';
import type { LinkState } from './link-state.ts';

/**
 * The time between checks while Redis serves everything. The link notices a fault within two seconds, even without
 * requests.
 */
const CHECK_MS = 1_000;

/** The time between checks while Redis fails to serve limits or notifications. */
const RECHECK_MS = 200;

/** A check that takes longer than this counts as failed. */
const CHECK_WAIT_MS = 500;

/**
 * The first and the longest pause between two attempts to connect. The first pause is short, because perhaps only the
 * connection was lost, and Redis still runs.
 */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** What each class that uses Redis receives. */
export interface RedisSide {
  link: RedisLink;
  keys: RedisKeys;
  clock: Clock;
  counters: Counters;
}

/** Tests one of `SHARED_PARTS`: limits or notifications. Resolves if Redis serves it, and rejects if Redis does not. */
export type Check = (clients: RedisClients) => Promise<unknown>;

/** Called with each main client as soon as it is connected, and with `undefined` as soon as it is lost. */
type ClientListener = (client: RedisClient | undefined) => void;

/**
 * Keeps the process connected to Redis. When the connection is lost, the link calls its listeners immediately and opens
 * a new client, perhaps at another address.
 *
 * The link regularly tests each of `SHARED_PARTS` (limits and notifications). When a check of a part fails, or `fail`
 * is called for a part, that part counts as unavailable until its next check succeeds.
 */
export class RedisLink {
  readonly #opener: RedisOpener;
  readonly #state: LinkState;
  readonly #checks = new Map<SharedPart, Check>();
  readonly #listeners: ClientListener[] = [];
  #clients: RedisClients | undefined;
  /** The number of the next attempt to connect. It selects one of the servers. */
  #attempt = 0;
  /** Failed attempts and lost connections since the last successful attempt. */
  #failures = 0;
  /** Starts the next attempt to connect or, while connected, the next checks. */
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(access: RedisAccess, state: LinkState) {
    this.#opener = new RedisOpener(access, ({ message }) => {
      // A `READONLY` error means that the server is now a Redis replica, which refuses writes. It still accepts
      // PUBLISH, but subscribers of the new master do not receive its messages. So find the new master immediately.
      if (message.startsWith('READONLY')) this.reconnect('READONLY');
    });
    this.#state = state;
  }

  /** The main client, while it is connected. */
  get client(): RedisClient | undefined {
    return this.#clients?.main;
  }

  /** All clients, while they are connected. If one is lost, the link replaces all. */
  get clients(): RedisClients | undefined {
    return this.#clients;
  }

  get opener(): RedisOpener {
    return this.#opener;
  }

  serves(part: SharedPart): boolean {
    return this.#state.serves(part);
  }

  /** Sets how to test whether Redis serves a part. */
  addCheck(part: SharedPart, check: Check): void {
    this.#checks.set(part, check);
  }

  onClient(listener: ClientListener): void {
    this.#listeners.push(listener);
  }

  /** Marks a part as unavailable until its next check succeeds. */
  fail(part: SharedPart, error: unknown): void {
    this.#state.set([part], false, describeRedisError(error));
    this.#scheduleChecks(RECHECK_MS);
  }

  /** Runs the checks immediately, because Redis may serve again. */
  checkNow(): void {
    this.#scheduleChecks(0);
  }

  /** Connects, and reconnects whenever the connection is lost. */
  async connect(): Promise<void> {
    try {
      const clients = await this.#opener.openClients(this.#attempt++);
      // A client may have disconnected already. In that case, no later event reports the loss.
      const areReady = Object.values(clients).every(({ status }) => status === 'ready');
      if (areReady && !this.#ended) return this.#useClients(clients);
      disconnect(clients);
      throw new Error('connection lost');
    } catch (error) {
      this.#dropClients(describeRedisError(error));
    }
  }

  /** Closes the connections and opens new ones, perhaps to another server. */
  reconnect(reason: string): void {
    if (this.#clients) this.#dropClients(reason);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    if (this.#clients) disconnect(this.#clients);
    this.#opener.end();
  }

  #useClients(clients: RedisClients): void {
    this.#clients = clients;
    this.#failures = 0;
    for (const client of Object.values(clients)) {
      let reason = 'connection lost';
      client.on('error', (error: Error) => {
        reason = describeRedisError(error);
      });
      for (const event of ['close', 'end']) {
        client.once(event, () => {
          if (clients === this.#clients) this.#dropClients(reason);
        });
      }
    }
    for (const listener of this.#listeners) listener(clients.main);
    this.#scheduleChecks(0);
  }

  #dropClients(reason: string): void {
    const lost = this.#clients;
    this.#clients = undefined;
    this.#state.set(this.#checks.keys(), false, reason);
    if (lost) {
      disconnect(lost);
      for (const listener of this.#listeners) listener(undefined);
    }
    if (this.#ended) return;
    clearTimeout(this.#timer);
    const pauseMs = backOff(this.#failures++, FIRST_PAUSE_MS, MAX_PAUSE_MS);
    this.#timer = setTimeout(() => void this.connect(), pauseMs);
    this.#timer.unref();
  }

  #scheduleChecks(pauseMs: number): void {
    if (this.#ended || this.#clients === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#runChecks(), pauseMs);
    this.#timer.unref();
  }

  async #runChecks(): Promise<void> {
    const clients = this.#clients;
    if (clients === undefined) return;
    const checks = [...this.#checks].map(([part, check]) => this.#runCheck(clients, part, check));
    const [hasMoved] = await Promise.all([this.#opener.hasMoved(clients.main), ...checks]);
    if (clients !== this.#clients) return;
    if (hasMoved) this.reconnect('the master is elsewhere');
    else this.#scheduleChecks(this.#state.isShared ? CHECK_MS : RECHECK_MS);
  }

  async #runCheck(clients: RedisClients, part: SharedPart, check: Check): Promise<void> {
    const fault = await withDeadline(check(clients), CHECK_WAIT_MS).then(
      () => undefined,
      (error: unknown) => describeRedisError(error),
    );
    // Without a fault, `set` ignores the reason.
    if (clients === this.#clients) this.#state.set([part], fault === undefined, fault ?? NOT_CONNECTED);
  }
}

function disconnect(clients: RedisClients): void {
  for (const client of Object.values(clients)) client.disconnect();
}
