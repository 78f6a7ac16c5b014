import {
  type Bookmark,
  BookmarkClient,
  type Collection,
  type CollectionStore,
  type ConflictPolicy,
  MemoryStore,
  type PendingWrite,
  type Report,
} from '../../src/client/index.ts';
import { SqliteStore } from '../../src/client/sqlite-store.ts';

/** Thrown at the step at which the simulated process of a device dies. */
class Killed extends Error {}

/** Returns a generator of random numbers (mulberry32) whose sequence depends only on the seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * A task that stops at its start and at each call of `pause`. `step` lets it run to its next stop. So a test chooses
 * which of several tasks runs next.
 */
export class Task {
  isDone = false;
  readonly #end: Promise<void>;
  #resume: () => void = () => {};
  #parked = Promise.withResolvers<void>();

  constructor(run: (pause: () => Promise<void>) => Promise<void>) {
    const pause = () =>
      new Promise<void>((resolve) => {
        this.#resume = resolve;
        this.#parked.resolve();
      });
    this.#end = pause()
      .then(() => run(pause))
      .finally(() => {
        this.isDone = true;
        this.#parked.resolve();
      });
    this.#end.catch(() => {});
  }

  async step(): Promise<void> {
    this.#parked = Promise.withResolvers();
    this.#resume();
    await this.#parked.promise;
    if (this.isDone) await this.#end;
  }
}

/** A write in a batch that a device sends. */
interface SentWrite {
  seq: number;
  /** The bookmark as the device's store has it. */
  row: Bookmark | undefined;
  operation: { do: string; id?: number; url?: string };
}

/** A write that the service executed for a device. */
export interface Transition {
  device: Device;
  seq: number;
  /** The bookmark as the device's store had it when it sent the write. */
  row: Bookmark | undefined;
  before: Bookmark | undefined;
  after: Bookmark | undefined;
}

export interface DeviceOptions {
  name: string;
  origins: string[];
  token: string;
  /** Opens another session of the user and returns its token. */
  issueToken: () => Promise<string>;
  policy: ConflictPolicy;
  /** A SQLite file. Default: memory. */
  file?: string | undefined;
  random: () => number;
  /** Reads the whole collection from the service. */
  readAll: () => Promise<Map<number, Bookmark>>;
  onTransition: (transition: Transition) => void;
}

/** The maximum number of calls to the store in one `sync`. The limit makes an endless loop fail instead of hang. */
const MAX_STEPS = 10_000;

/**
 * A simulated device of a user. Its client may fail or die at any step, and its store outlives the client. The device
 * records what the user wrote.
 */
export class Device {
  readonly options: DeviceOptions;
  readonly wrote: PendingWrite[] = [];
  /** For each add that was sent, whether the account had a bookmark with its url each time. */
  readonly wasSaved = new Map<number, boolean[]>();
  /** How often the device's token was revoked. */
  revocations = 0;
  /** The probability of a fault at each step. */
  faults = 0;
  #store: CollectionStore;
  #collection!: Collection;
  #pause: () => Promise<void> = async () => {};
  #life = new AbortController();
  #token: string;
  #steps = 0;

  constructor(options: DeviceOptions) {
    this.options = options;
    this.#token = options.token;
    this.#store = this.#openStore();
    this.#start();
  }

  #openStore(): CollectionStore {
    return this.options.file === undefined ? new MemoryStore() : new SqliteStore(this.options.file);
  }

  get collection(): Collection {
    return this.#collection;
  }

  get store(): CollectionStore {
    return this.#store;
  }

  /** Starts a new client on the same store, as a new process of the device would. A SQLite file is opened again. */
  #start(): void {
    if (this.#store instanceof SqliteStore) {
      this.#store[Symbol.dispose]();
      this.#store = this.#openStore();
    }
    this.#life = new AbortController();
    const client = new BookmarkClient({
      baseUrl: `${this.options.origins[0]}/api/v1`,
      token: this.#token,
      fetch: (url, init) => this.#fetch(String(url), init),
      retryForMs: 0,
    });
    const faulty = new Proxy(this.#store, {
      get: (store, name) => {
        const value = Reflect.get(store, name, store);
        if (typeof value !== 'function') return value;
        this.#steps += 1;
        if (this.#steps > MAX_STEPS) throw new Error('the sync makes no progress');
        if (name !== 'update' && name !== 'apply') return value.bind(store);
        return async (...args: unknown[]) => {
          this.#mayDie();
          const result = await value.apply(store, args);
          this.#mayDie();
          return result;
        };
      },
    });
    this.#collection = client.collection(faulty, { onConflict: this.options.policy });
  }

  #chance(probability: number): boolean {
    return this.options.random() < probability;
  }

  #mayDie(): void {
    if (!this.#chance(this.faults)) return;
    this.#life.abort(new Killed());
    throw this.#life.signal.reason;
  }

  async #fetch(url: string, init: RequestInit | undefined): Promise<Response> {
    const { origins, random, readAll, onTransition } = this.options;
    await this.#pause();
    this.#mayDie();
    if (this.#chance(this.faults)) throw new TypeError('the request was lost');
    if (this.#chance(this.faults / 4)) await this.#revokeToken();
    if (this.#chance(this.faults))
      return Response.json({ error: 'busy', code: 'UNAVAILABLE' }, { status: 503 });
    const origin = origins[Math.floor(random() * origins.length)]!;
    const target = url.replace(origins[0]!, origin);
    const isWrite = url.endsWith('/bookmarks/batch');
    const outbox = await this.#store.readOutbox();
    const before = isWrite ? await readAll() : new Map<number, Bookmark>();
    const writes: SentWrite[] = [];
    for (const operation of isWrite ? JSON.parse(String(init?.body)).operations : []) {
      const { seq, id } = outbox.find(({ attempt }) => attempt?.key === operation.key)!;
      writes.push({ seq, row: (await this.#store.read(id)).row, operation });
    }
    const response = await fetch(target, { ...init, signal: null });
    const body = await response.text();
    if (isWrite && response.status === 200) {
      const after = await readAll();
      this.#checkSaved(writes, JSON.parse(body).results, before);
      for (const id of new Set([...before.keys(), ...after.keys()])) {
        const change = { before: before.get(id), after: after.get(id) };
        if (JSON.stringify(change.before) === JSON.stringify(change.after)) continue;
        const { results } = JSON.parse(body);
        const write = writes.find(({ operation }, at) =>
          operation.do === 'add' ? change.before === undefined && results[at].id === id : operation.id === id,
        )!;
        onTransition({ device: this, seq: write.seq, row: write.row, ...change });
      }
    }
    await this.#pause();
    this.#mayDie();
    if (this.#chance(this.faults)) throw new TypeError('the response was lost');
    return new Response(body, { status: response.status, headers: response.headers });
  }

  /** Notes for each add of a batch whether the account had a bookmark with its url at that moment. */
  #checkSaved(writes: SentWrite[], results: Partial<Bookmark>[], before: Map<number, Bookmark>): void {
    const urls = new Map([...before].map(([id, { url }]) => [id, url]));
    writes.forEach(({ seq, operation }, at) => {
      const { id, url } = results[at]!;
      if (operation.do === 'add') {
        const isSaved = [...urls.values()].includes(operation.url!);
        this.wasSaved.set(seq, [...(this.wasSaved.get(seq) ?? []), isSaved]);
      }
      if (operation.do === 'delete') urls.delete(operation.id!);
      else if (id !== undefined && url !== undefined) urls.set(id, url);
    });
  }

  /** Revokes the device's token, as a person does after losing the device. */
  async #revokeToken(): Promise<void> {
    const headers = { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' };
    const url = `${this.options.origins[0]}/api/v1/logout`;
    const { status } = await fetch(url, { method: 'POST', headers, body: '{}' });
    if (status !== 200) throw new Error(`the token was not revoked: ${status}`);
  }

  /** Makes a local change and records its writes. If the client dies, a new one is started. */
  async write(work: (collection: Collection) => Promise<unknown>): Promise<void> {
    const lastSeq = () => this.wrote.at(-1)?.seq ?? 0;
    await work(this.#collection).catch((error) => this.#restart(error));
    for (const write of await this.#store.readOutbox()) if (write.seq > lastSeq()) this.wrote.push(write);
  }

  /** Synchronizes the device. Returns false if a fault ends the sync. */
  async sync(pause: () => Promise<void>): Promise<boolean> {
    this.#pause = pause;
    this.#steps = 0;
    try {
      await this.#collection.sync({ signal: this.#life.signal });
      return true;
    } catch (error) {
      await this.#restart(error);
      return false;
    } finally {
      this.#pause = async () => {};
    }
  }

  /** Lets the device continue if a simulated fault can cause the error. Otherwise, throws the error. */
  async #restart(error: unknown): Promise<void> {
    if (this.#life.signal.aborted) return this.#start();
    const { code } = error as { code?: string };
    if (!(error instanceof Error && error.name === 'ApiError')) throw error;
    if (code === 'CONNECTION_LOST' || code === 'UNAVAILABLE') return;
    if (code !== 'INVALID_TOKEN') throw error;
    this.revocations += 1;
    this.#token = await this.options.issueToken();
    this.#start();
  }

  reports(): Promise<Report[]> {
    return this.#store.readReports();
  }

  close(): void {
    if (this.#store instanceof SqliteStore) this.#store[Symbol.dispose]();
  }
}
