import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Coordination, SHARED_PARTS } from '../coordination/port.ts';
import { SIGN_IN_OUTCOMES, type SignInOutcome } from '../sign-in/sign-in-error.ts';
import type { Database } from '../store/database.ts';
import { UNAVAILABLE_REASONS, type UnavailableReason } from '../store/errors.ts';
import type { DatabaseProbe } from '../store/probe.ts';
import { countStagedImports } from '../store/sweep.ts';
import { REVISION, VERSION } from './version.ts';

/** The service's metrics for Prometheus. The values of labels never grow with the number of users. */

/**
 * What a request is to whoever promises availability: `poll` reads what is new, held or not, `import` an array of bookmarks;
 * `read` and `write` are by scope; `other` is no endpoint of the API. Probes are in no class, and are not counted.
 */
export type RequestClass = 'read' | 'write' | 'poll' | 'import' | 'other';

/** A request with its response. */
interface FinishedRequest {
  route: string;
  class: RequestClass;
  status: number;
  seconds: number;
  /** Held as a long poll: timed as a wait, not as a request. */
  held: boolean;
}

/**
 * Why a response did not leave whole: its client took nothing of it, or went; the service could not go on; or the client
 * went before there was one.
 */
const BREAK_REASONS = ['stalled', 'client', 'service', 'unanswered'] as const;
export type BreakReason = (typeof BREAK_REASONS)[number];

/** Why a request is refused early; `account`: too much of what was sent to its own one has not been read. */
const OVERLOAD_REASONS = ['event_loop', 'pool', 'unsent', 'account', 'received', 'account_received'] as const;
export type OverloadReason = (typeof OVERLOAD_REASONS)[number];

/** What is guessed, and whether the guess was tried and wrong, or refused as too many were wrong before. */
const CREDENTIALS = ['invite', 'bearer'] as const;
export type Credential = (typeof CREDENTIALS)[number];
const GUESS_ENDS = ['failed', 'refused'] as const;
type AttemptEnd = (typeof GUESS_ENDS)[number];

/** How a staged import ends: `given_up` where it ended every worker that began it. */
const IMPORT_ENDS = ['done', 'failed', 'cancelled', 'given_up'] as const;

export type ImportEnd = (typeof IMPORT_ENDS)[number];

/** What is read at each scrape rather than reported. */
interface MetricsSources {
  database: Database;
  importDatabase: Database;
  probe: DatabaseProbe;
  coordination: Coordination;
  /** The largest number of polls that this replica holds. */
  maxWaiters: number;
  /** Bytes of responses that clients have not taken. */
  outboundBacklog: { readonly total: number };
  /** Unsent bytes beyond which requests are refused. */
  maxOutboundBacklog: number;
}

/** What the promise of service is about: classes of requests, notifications that reach their poll, and speed. */
const PROMISED = ['read', 'write', 'poll', 'import', 'wake', 'speed'] as const;

/** A poll that is answered later after its notification, or a request that takes longer, breaks the promise. */
const WAKE_LIMIT_SECONDS = 0.5;
const REQUEST_LIMIT_SECONDS = 1;

const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 28, 30, 35];
const IMPORT_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Where the rest of the service reports events, and what Prometheus scrapes. The registry is its own. */
export class Metrics {
  readonly registry = new Registry();
  readonly #registers = [this.registry];
  #sources: MetricsSources | undefined;

  readonly #requests = new Counter({
    name: 'bookmarks_http_requests_total',
    help: 'Requests with a response, probes left out; classes are read, write, poll, import and other.',
    labelNames: ['route', 'class', 'status'],
    registers: this.#registers,
  });
  readonly #promised = new Counter({
    name: 'bookmarks_slo_events_total',
    help: 'What the promise of service is about, by whether it was kept (good) or broken (bad).',
    labelNames: ['class', 'result', 'version'],
    registers: this.#registers,
  });
  readonly #durations = new Histogram({
    name: 'bookmarks_http_request_duration_seconds',
    help: 'Time from request to response, held polls left out.',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS,
    registers: this.#registers,
  });
  readonly #broken = new Counter({
    name: 'bookmarks_http_broken_responses_total',
    help: 'Responses that did not leave whole.',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly #waits = new Histogram({
    name: 'bookmarks_sync_wait_seconds',
    help: 'Time from request to response of held polls.',
    buckets: WAIT_BUCKETS,
    registers: this.#registers,
  });
  readonly #wakeDelays = new Histogram({
    name: 'bookmarks_wake_delay_seconds',
    help: "From a notification's arrival at this replica to the bookmarks that it found.",
    buckets: REQUEST_BUCKETS,
    registers: this.#registers,
  });
  readonly #imports = new Counter({
    name: 'bookmarks_import_jobs_total',
    help: 'Staged imports by how they ended: run or given up by this worker, or cancelled by this replica.',
    labelNames: ['state'],
    registers: this.#registers,
  });
  readonly #importDurations = new Histogram({
    name: 'bookmarks_import_duration_seconds',
    help: 'Time that staged imports took this worker.',
    buckets: IMPORT_BUCKETS,
    registers: this.#registers,
  });
  readonly #poolWaits = new Histogram({
    name: 'bookmarks_database_pool_wait_seconds',
    help: 'Time that statements waited for a connection, where they had to.',
    labelNames: ['pool'],
    buckets: REQUEST_BUCKETS,
    registers: this.#registers,
  });
  readonly #defects = new Counter({
    name: 'bookmarks_database_defects_total',
    help: 'Statements that Postgres refused for a reason that nobody foresaw.',
    labelNames: ['sqlstate'],
    registers: this.#registers,
  });
  readonly #unavailable = new Counter({
    name: 'bookmarks_database_unavailable_total',
    help: 'Statements that failed because Postgres did not serve.',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly #overloads = new Counter({
    name: 'bookmarks_overload_refusals_total',
    help: 'Requests refused with 503 because the replica had too much to do.',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly #guesses = new Counter({
    name: 'bookmarks_credential_guesses_total',
    help: 'Invite codes and tokens that do not exist: tried (failed), or refused after too many.',
    labelNames: ['credential', 'end'],
    registers: this.#registers,
  });
  readonly #signIns = new Counter({
    name: 'bookmarks_sign_ins_total',
    help: 'Logins by the provider by how they ended; unreachable, slow, invalid and client are its failures.',
    labelNames: ['outcome'],
    registers: this.#registers,
  });

  constructor() {
    // Alerts on rates need each series before its first event.
    for (const reason of UNAVAILABLE_REASONS) this.#unavailable.inc({ reason }, 0);
    for (const promised of PROMISED)
      for (const result of ['good', 'bad'])
        this.#promised.inc({ class: promised, result, version: VERSION }, 0);
    for (const state of IMPORT_ENDS) this.#imports.inc({ state }, 0);
    for (const reason of OVERLOAD_REASONS) this.#overloads.inc({ reason }, 0);
    for (const outcome of SIGN_IN_OUTCOMES) this.#signIns.inc({ outcome }, 0);
    for (const reason of BREAK_REASONS) this.#broken.inc({ reason }, 0);
    for (const credential of CREDENTIALS)
      for (const end of GUESS_ENDS) this.#guesses.inc({ credential, end }, 0);
    this.#defects.inc({ sqlstate: 'XX000' }, 0);
    for (const pool of ['api', 'import']) this.#poolWaits.zero({ pool });
    new Gauge({
      name: 'bookmarks_build_info',
      help: 'Always 1.',
      labelNames: ['version', 'revision', 'node'],
      registers: this.#registers,
    }).set({ version: VERSION, revision: REVISION, node: process.versions.node }, 1);
    this.#addGauges();
    this.#addCounters();
  }

  /** A request has its response. Imports, exports and held polls take their time, and promise no speed. */
  finished({ route, class: requestClass, status, seconds, held }: FinishedRequest): void {
    this.#requests.inc({ route, class: requestClass, status });
    if (held) this.#waits.observe(seconds);
    else this.#durations.observe({ route }, seconds);
    if (requestClass === 'other') return;
    this.#promise(requestClass, status < 500);
    const isTimed = !held && requestClass !== 'import' && !route.endsWith('/export');
    if (isTimed) this.#promise('speed', seconds <= REQUEST_LIMIT_SECONDS);
  }

  #promise(promised: (typeof PROMISED)[number], isKept: boolean): void {
    this.#promised.inc({ class: promised, result: isKept ? 'good' : 'bad', version: VERSION });
  }

  /** A response was truncated. */
  responseAborted(reason: BreakReason): void {
    this.#broken.inc({ reason });
  }

  /** A poll was woken: the time from the notification's arrival at this replica to the page that it found. */
  pollResponded(seconds: number): void {
    this.#wakeDelays.observe(seconds);
    this.#promise('wake', seconds <= WAKE_LIMIT_SECONDS);
  }

  /** An import ended on this replica. */
  importEnded(state: ImportEnd, seconds: number): void {
    this.#imports.inc({ state });
    if (state === 'done' || state === 'failed') this.#importDurations.observe(seconds);
  }

  /** A statement had to wait for a connection. */
  waitedForConnection(pool: 'api' | 'import', seconds: number): void {
    this.#poolWaits.observe({ pool }, seconds);
  }

  /** Postgres refused a statement for a reason that nobody foresaw, by its SQLSTATE. */
  databaseFailed(sqlState: string): void {
    this.#defects.inc({ sqlstate: sqlState });
  }

  /** A statement failed because the database does not serve now. */
  databaseUnavailable(reason: UnavailableReason): void {
    this.#unavailable.inc({ reason });
  }

  /** A request was refused because the replica has too much to do. */
  overloaded(reason: OverloadReason): void {
    this.#overloads.inc({ reason });
  }

  /** Somebody presented an invite code or a token that does not exist. */
  guessed(credential: Credential, end: AttemptEnd): void {
    this.#guesses.inc({ credential, end });
  }

  /** A login by the provider ended, or could not begin. */
  signInEnded(outcome: SignInOutcome): void {
    this.#signIns.inc({ outcome });
  }

  /** From now on each scrape reads these sources too, and Node's own metrics. */
  watch(sources: MetricsSources): void {
    this.#sources = sources;
    collectDefaultMetrics({ register: this.registry });
  }

  #addGauges(): void {
    this.#gauge('bookmarks_waiters', 'Polls held now.', [], (gauge, { coordination }) =>
      gauge.set(coordination.notifier.held),
    );
    this.#gauge(
      'bookmarks_waiters_limit',
      'Polls that this replica holds at most.',
      [],
      (gauge, { maxWaiters }) => gauge.set(maxWaiters),
    );
    this.#gauge(
      'bookmarks_coordination_degraded',
      '1 while Redis is away for a part.',
      ['part'],
      (gauge, { coordination: { away } }) => {
        for (const part of SHARED_PARTS) gauge.set({ part }, away.includes(part) ? 1 : 0);
      },
    );
    this.#gauge(
      'bookmarks_database_reachable',
      '1 while the database responds.',
      [],
      async (gauge, { probe }) => gauge.set((await probe.check()) === 'reachable' ? 1 : 0),
    );
    this.#gauge(
      'bookmarks_unsent_bytes',
      'Bytes of responses that clients have not taken.',
      [],
      (gauge, { outboundBacklog }) => gauge.set(outboundBacklog.total),
    );
    this.#gauge(
      'bookmarks_unsent_bytes_limit',
      'Beyond so many unsent bytes requests are refused.',
      [],
      (gauge, { maxOutboundBacklog }) => gauge.set(maxOutboundBacklog),
    );
    // Before the gauge that makes a statement: its own connection is not counted as in use.
    const ofPools = (name: string, help: string, of: 'size' | 'inUse' | 'waiting') =>
      this.#gauge(name, help, ['pool'], (gauge, { database, importDatabase }) => {
        for (const [pool, { gauges }] of Object.entries({ api: database, import: importDatabase }))
          gauge.set({ pool }, gauges[of]);
      });
    ofPools('bookmarks_database_pool_size', 'Connections of the pool.', 'size');
    ofPools('bookmarks_database_pool_in_use', 'Connections in use now.', 'inUse');
    ofPools('bookmarks_database_pool_waiting', 'Statements that wait for a connection.', 'waiting');
    this.#gauge(
      'bookmarks_imports_staged',
      'Staged imports that are not over.',
      ['state'],
      async (gauge, { database }) => {
        gauge.reset();
        // While the database is away the other metrics must still be there: they show that it is.
        const counts = await countStagedImports(database).catch(() => []);
        for (const [state, count] of counts) gauge.set({ state }, count);
      },
    );
  }

  #addCounters(): void {
    const total = <Label extends string>(
      name: string,
      help: string,
      labelNames: Label[],
      collect: (counter: Counter<Label>, counters: Coordination['counters']) => void,
    ) => {
      const sources = () => this.#sources;
      new Counter({
        name,
        help,
        labelNames,
        registers: this.#registers,
        collect() {
          const counters = sources()?.coordination.counters;
          this.reset();
          if (counters !== undefined) collect(this, counters);
        },
      });
    };
    total('bookmarks_wakes_published_total', 'Wakes sent to other replicas.', [], (counter, counters) =>
      counter.inc(counters.wakesPublished),
    );
    total('bookmarks_wakes_received_total', 'Wakes heard from other replicas.', [], (counter, counters) =>
      counter.inc(counters.wakesReceived),
    );
    total(
      'bookmarks_limiter_decisions_total',
      'Decisions of the rate limiter; `fallback` ones, made without Redis, are admitted or refused as well.',
      ['decision'],
      (counter, counters) => {
        for (const decision of ['admitted', 'refused', 'fallback'] as const)
          counter.inc({ decision }, counters[decision]);
      },
    );
  }

  #gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    collect: (gauge: Gauge<Label>, sources: MetricsSources) => void | Promise<void>,
  ): void {
    const sources = () => this.#sources;
    new Gauge({
      name,
      help,
      labelNames,
      registers: this.#registers,
      async collect() {
        const read = sources();
        if (read !== undefined) await collect(this, read);
      },
    });
  }
}

/** The names of the service's own series, sorted. Dashboards and alerts may use them besides Node's. */
export const METRIC_NAMES: readonly string[] = new Metrics().registry
  .getMetricsAsArray()
  .map(({ name }) => name)
  .sort();

/** Serves `GET /metrics`, and nothing else, on a port of its own. */
export async function serveMetrics(registry: Registry, host: string, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') return void response.writeHead(404).end();
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(port, host);
  await once(server, 'listening');
  return server;
}
