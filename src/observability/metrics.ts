import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Coordination, SHARED_PARTS } from '../coordination/port.ts';
import { OVERLOAD_REASONS } from '../flow/overload.ts';
import { SIGN_IN_OUTCOMES } from '../sign-in/sign-in-error.ts';
import type { Database } from '../store/driver/database.ts';
import { UNAVAILABLE_REASONS } from '../store/driver/errors.ts';
import type { DatabaseProbe } from '../store/driver/probe.ts';
import { countStagedImports } from '../store/sweep.ts';
import { REVISION, VERSION } from './version.ts';

/** The service's metrics for Prometheus. The number of label values does not grow with the number of users. */

/**
 * The class of a request, for the service-level objectives. `poll` is a request to `/bookmarks/sync` or
 * `/bookmarks/changes`. `import` is a request to `/import`. `read` and `write` are all other requests of the API.
 * `other` is everything outside of the API. The probes `/livez` and `/readyz` are not counted.
 */
export type RequestClass = 'read' | 'write' | 'poll' | 'import' | 'other';

/** A request and its response. */
interface FinishedRequest {
  route: string;
  class: RequestClass;
  status: number;
  seconds: number;
  /** Whether the request was held as a long poll. If so, `seconds` is mostly the wait. */
  held: boolean;
}

/**
 * Why a response was aborted. `stalled`: the client stopped reading. `client`: the client left during the response.
 * `service`: the service could not continue. `unanswered`: the client left before the response.
 */
const ABORT_REASONS = ['stalled', 'client', 'service', 'unanswered'] as const;
export type AbortReason = (typeof ABORT_REASONS)[number];

/** Credentials that an attacker may try to guess: invite codes and tokens. */
const CREDENTIALS = ['invite', 'bearer'] as const;
export type Credential = (typeof CREDENTIALS)[number];
/** `failed`: the credential was wrong. `refused`: too many attempts had failed, so the response was `RATE_LIMITED`. */
const ATTEMPT_ENDS = ['failed', 'refused'] as const;
type AttemptEnd = (typeof ATTEMPT_ENDS)[number];

/** How a staged import ended. `given_up`: three workers began the import, and none of them completed it. */
const IMPORT_ENDS = ['done', 'failed', 'cancelled', 'given_up'] as const;

export type ImportEnd = (typeof IMPORT_ENDS)[number];

/** The objects whose current values each scrape reads. */
interface MetricsSources {
  database: Database;
  importDatabase: Database;
  probe: DatabaseProbe;
  coordination: Coordination;
  /** The maximum number of polls that this replica may hold. */
  maxWaiters: number;
  /** Bytes of responses that clients have not read. */
  outboundBacklog: { readonly total: number };
  /** Beyond this many unread bytes, requests are refused. */
  maxOutboundBacklog: number;
}

/**
 * The service-level objectives. The first four are success rates, one for each class of requests except `other`. `wake`
 * is how soon a poll responds after a notification. `speed` is how soon requests of the API get their responses; it
 * ignores held polls, imports and exports.
 */
const OBJECTIVES = ['read', 'write', 'poll', 'import', 'wake', 'speed'] as const;

/** The time limit of the objective `wake`. */
const WAKE_LIMIT_SECONDS = 0.5;
/** The time limit of the objective `speed`. */
const REQUEST_LIMIT_SECONDS = 1;

const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WAIT_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 28, 30, 35];
const IMPORT_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** The service reports events here, and Prometheus scrapes the registry. */
export class Metrics {
  readonly registry = new Registry();
  readonly #registers = [this.registry];
  #sources: MetricsSources | undefined;

  readonly #requests = new Counter({
    name: 'bookmarks_http_requests_total',
    help: 'Requests with a response, except probes. Classes: read, write, poll, import and other.',
    labelNames: ['route', 'class', 'status'],
    registers: this.#registers,
  });
  readonly #objectiveEvents = new Counter({
    name: 'bookmarks_slo_events_total',
    help: 'Events of the service-level objectives, good or bad.',
    labelNames: ['class', 'result', 'version'],
    registers: this.#registers,
  });
  readonly #durations = new Histogram({
    name: 'bookmarks_http_request_duration_seconds',
    help: 'Time from request to response, except held polls.',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS,
    registers: this.#registers,
  });
  /** Counts an aborted response. */
  readonly responseAborted = this.#eventsBy(
    'reason',
    ABORT_REASONS,
    'bookmarks_http_broken_responses_total',
    'Aborted responses.',
  );
  readonly #waits = new Histogram({
    name: 'bookmarks_sync_wait_seconds',
    help: 'Time from request to response of held polls.',
    buckets: WAIT_BUCKETS,
    registers: this.#registers,
  });
  readonly #wakeDelays = new Histogram({
    name: 'bookmarks_wake_delay_seconds',
    help: 'Time from when a notification wakes a held poll until this replica has read the news for it.',
    buckets: REQUEST_BUCKETS,
    registers: this.#registers,
  });
  readonly #importEnded = this.#eventsBy(
    'state',
    IMPORT_ENDS,
    'bookmarks_import_jobs_total',
    'Staged imports by outcome: run or given up by this worker, or cancelled by this replica.',
  );
  readonly #importDurations = new Histogram({
    name: 'bookmarks_import_duration_seconds',
    help: 'Duration of staged imports on this worker.',
    buckets: IMPORT_BUCKETS,
    registers: this.#registers,
  });
  readonly #poolWaits = new Histogram({
    name: 'bookmarks_database_pool_wait_seconds',
    help: 'Time that statements waited for a connection, if they waited.',
    labelNames: ['pool'],
    buckets: REQUEST_BUCKETS,
    registers: this.#registers,
  });
  /** Counts a statement that Postgres refused with an unexpected error. */
  readonly databaseFailed = this.#eventsBy<string>(
    'sqlstate',
    ['XX000'],
    'bookmarks_database_defects_total',
    'Statements that Postgres refused with an unexpected error.',
  );
  /** Counts a statement that failed because Postgres was unavailable. */
  readonly databaseUnavailable = this.#eventsBy(
    'reason',
    UNAVAILABLE_REASONS,
    'bookmarks_database_unavailable_total',
    'Statements that failed because Postgres was unavailable.',
  );
  /** Counts a request that was refused because of overload. */
  readonly overloaded = this.#eventsBy(
    'reason',
    OVERLOAD_REASONS,
    'bookmarks_overload_refusals_total',
    'Requests refused with 503 because the replica was overloaded.',
  );
  readonly #guesses = new Counter({
    name: 'bookmarks_credential_guesses_total',
    help: 'Invite codes and tokens that were wrong (failed), or refused after too many wrong ones.',
    labelNames: ['credential', 'end'],
    registers: this.#registers,
  });
  /** Counts a login through the provider that ended or could not start. */
  readonly signInEnded = this.#eventsBy(
    'outcome',
    SIGN_IN_OUTCOMES,
    'bookmarks_sign_ins_total',
    'Logins by the provider, by outcome. Failures of the provider: unreachable, slow, invalid and client.',
  );

  constructor() {
    // Alerts on rates work only if each series exists before its first event.
    for (const objective of OBJECTIVES)
      for (const result of ['good', 'bad'])
        this.#objectiveEvents.inc({ class: objective, result, version: VERSION }, 0);
    for (const credential of CREDENTIALS)
      for (const end of ATTEMPT_ENDS) this.#guesses.inc({ credential, end }, 0);
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

  /** Adds a counter with one label. Returns the function that counts an event. */
  #eventsBy<Value extends string>(label: string, values: readonly Value[], name: string, help: string) {
    const counter = new Counter({ name, help, labelNames: [label], registers: this.#registers });
    // Alerts on rates work only if each series exists before its first event.
    for (const value of values) counter.inc({ [label]: value }, 0);
    return (value: Value): void => counter.inc({ [label]: value });
  }

  /** Counts a finished request. The objective `speed` ignores imports, exports and held polls. */
  finished({ route, class: requestClass, status, seconds, held }: FinishedRequest): void {
    this.#requests.inc({ route, class: requestClass, status });
    if (held) this.#waits.observe(seconds);
    else this.#durations.observe({ route }, seconds);
    if (requestClass === 'other') return;
    this.#countForObjective(requestClass, status < 500);
    const isTimed = !held && requestClass !== 'import' && !route.endsWith('/export');
    if (isTimed) this.#countForObjective('speed', seconds <= REQUEST_LIMIT_SECONDS);
  }

  #countForObjective(objective: (typeof OBJECTIVES)[number], isGood: boolean): void {
    this.#objectiveEvents.inc({ class: objective, result: isGood ? 'good' : 'bad', version: VERSION });
  }

  /** Records the time from the moment when a notification woke a poll until the poll has read its page. */
  pollResponded(seconds: number): void {
    this.#wakeDelays.observe(seconds);
    this.#countForObjective('wake', seconds <= WAKE_LIMIT_SECONDS);
  }

  /** Counts a staged import that ended in this process. */
  importEnded(state: ImportEnd, seconds: number): void {
    this.#importEnded(state);
    if (state === 'done' || state === 'failed') this.#importDurations.observe(seconds);
  }

  /** Records how long a statement waited for a connection. */
  waitedForConnection(pool: 'api' | 'import', seconds: number): void {
    this.#poolWaits.observe({ pool }, seconds);
  }

  /** Counts an invite code or a token that was wrong or refused. */
  guessed(credential: Credential, end: AttemptEnd): void {
    this.#guesses.inc({ credential, end });
  }

  /** Adds the values of `sources`, and Node's own metrics, to each scrape. */
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
      'Maximum of polls that this replica holds.',
      [],
      (gauge, { maxWaiters }) => gauge.set(maxWaiters),
    );
    this.#gauge(
      'bookmarks_coordination_degraded',
      '1 while a part of the coordination works without Redis.',
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
      'Bytes of responses that clients have not read.',
      [],
      (gauge, { outboundBacklog }) => gauge.set(outboundBacklog.total),
    );
    this.#gauge(
      'bookmarks_unsent_bytes_limit',
      'Limit of unread bytes. Beyond it, requests are refused.',
      [],
      (gauge, { maxOutboundBacklog }) => gauge.set(maxOutboundBacklog),
    );
    // The gauge `bookmarks_imports_staged` runs a statement. The pools' gauges are defined before it, so that they are
    // read first and do not count the connection of that statement.
    const addPoolGauge = (name: string, help: string, value: 'size' | 'inUse' | 'waiting') =>
      this.#gauge(name, help, ['pool'], (gauge, { database, importDatabase }) => {
        for (const [pool, { gauges }] of Object.entries({ api: database, import: importDatabase }))
          gauge.set({ pool }, gauges[value]);
      });
    addPoolGauge('bookmarks_database_pool_size', 'Connections of the pool.', 'size');
    addPoolGauge('bookmarks_database_pool_in_use', 'Connections in use now.', 'inUse');
    addPoolGauge('bookmarks_database_pool_waiting', 'Statements that wait for a connection.', 'waiting');
    this.#gauge(
      'bookmarks_imports_staged',
      'Staged imports that have not ended.',
      ['state'],
      async (gauge, { database }) => {
        gauge.reset();
        // If the database cannot be reached, this gauge is empty. If the scrape failed instead, the metrics that report
        // the outage would be missing too.
        const counts = await countStagedImports(database).catch(() => []);
        for (const [state, count] of counts) gauge.set({ state }, count);
      },
    );
  }

  #addCounters(): void {
    const addTotal = <Label extends string>(
      name: string,
      help: string,
      labelNames: Label[],
      collect: (counter: Counter<Label>, counters: Coordination['counters']) => void,
    ) => {
      // In `collect` below, `this` is the counter, not this object.
      const sources = () => this.#sources;
      new Counter({
        name,
        help,
        labelNames,
        registers: this.#registers,
        collect() {
          const counters = sources()?.coordination.counters;
          // `counters` holds totals since the start. So the counter is set to 0 before the totals are added.
          this.reset();
          if (counters !== undefined) collect(this, counters);
        },
      });
    };
    addTotal(
      'bookmarks_wakes_published_total',
      'Notifications sent to other replicas.',
      [],
      (counter, counters) => counter.inc(counters.wakesPublished),
    );
    addTotal(
      'bookmarks_wakes_received_total',
      'Notifications received from other replicas.',
      [],
      (counter, counters) => counter.inc(counters.wakesReceived),
    );
    addTotal(
      'bookmarks_limiter_decisions_total',
      'Decisions of the rate limiter. Those made without Redis count as `fallback` and also as admitted or refused.',
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
        const currentSources = sources();
        if (currentSources !== undefined) await collect(this, currentSources);
      },
    });
  }
}

/** The names of the service's own metrics, sorted. Dashboards and alerts may use only these metrics and Node's own. */
export const METRIC_NAMES: readonly string[] = new Metrics().registry
  .getMetricsAsArray()
  .map(({ name }) => name)
  .sort();

/** Starts a server that serves only `GET /metrics`, on a port of its own. */
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
