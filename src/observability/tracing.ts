import { randomUUID } from 'node:crypto';
import {
  type Attributes,
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import type { Coordination, Limiters, PendingValues, RateLimiter } from '../coordination/port.ts';
import type { Database, Sql, Statement } from '../store/database.ts';
import { VERSION } from './version.ts';

/**
 * OpenTelemetry traces of requests, statements, Redis calls, and jobs across the queue. The SDK is loaded only if a
 * collector is configured.
 */

/** Renames the current span. */
type RenameSpan = (name: string) => void;

/** Starts and ends spans. */
export interface Tracing {
  /**
   * Runs the function in a child span of the active one. A rejection marks the span as failed. Without an active
   * span, runs it without a span.
   */
  span<T>(name: string, attributes: Attributes, run: (rename: RenameSpan) => Promise<T>): Promise<T>;
  /** Runs the function in a new span that continues another process's trace. */
  resume<T>(traceParent: string | null, name: string, run: () => Promise<T>): Promise<T>;
  /** The current span as a W3C `traceparent`. */
  readonly traceParent: string | undefined;
  /** Sends all pending spans. */
  close(): Promise<void>;
}

/** Runs everything without spans. */
export const noTracing: Tracing = {
  span: (_name, _attributes, run) => run(() => {}),
  resume: (_traceParent, _name, run) => run(),
  traceParent: undefined,
  close: async () => {},
};

/** How to open tracing. */
interface TracingOptions {
  /** The url of the OTLP collector (HTTP). */
  endpoint: string;
  /** The share of traces started here that are recorded. */
  ratio: number;
  /** The role of the process. */
  role: string;
  /** Further attributes of the process. They override ours. */
  resource: Readonly<Record<string, string>>;
}

/** Opens tracing to a collector. */
export async function openTracing({ endpoint, ratio, role, resource }: TracingOptions): Promise<Tracing> {
  const [sdk, { OTLPTraceExporter }, { AsyncLocalStorageContextManager }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/context-async-hooks'),
      import('@opentelemetry/resources'),
    ]);
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'bookmark-service',
      'service.version': VERSION,
      'service.instance.id': randomUUID(),
      'bookmarks.role': role,
      ...resource,
    }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return {
    span,
    resume,
    close: async () => {
      await provider.shutdown();
      trace.disable();
      context.disable();
    },
    get traceParent() {
      return formatTraceParent();
    },
  };
}

/** The tracer for the service's spans. */
export const tracer = () => trace.getTracer('bookmark-service', VERSION);

// Work without a request (sweeps, probes, scrapes) starts no trace. Otherwise most traces of an idle service would be
// of such work.
const span: Tracing['span'] = (name, attributes, run) =>
  trace.getActiveSpan() === undefined
    ? run(() => {})
    : tracer().startActiveSpan(name, { kind: SpanKind.CLIENT, attributes }, (active) =>
        endWith(active, () => run((better) => void active.updateName(better))),
      );

const resume: Tracing['resume'] = (traceParent, name, run) =>
  tracer().startActiveSpan(name, { kind: SpanKind.CONSUMER }, parseTraceParent(traceParent), (active) =>
    endWith(active, run),
  );

async function endWith<T>(active: Span, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    // Only the error's name, because messages of the database may contain values.
    active.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).name });
    throw error;
  } finally {
    active.end();
  }
}

function formatTraceParent(): string | undefined {
  const at = trace.getActiveSpan()?.spanContext();
  return at && `00-${at.traceId}-${at.spanId}-${at.traceFlags.toString(16).padStart(2, '0')}`;
}

/**
 * The context of a request. It continues the client's trace if `traceparent` is valid. Only the usual share is
 * recorded: a client that asks for all of its traces would otherwise fill the collector.
 */
export function continueClientTrace(text: unknown, ratio: number) {
  const parent = parseTraceParent(text);
  const client = trace.getSpanContext(parent);
  if (client === undefined || Math.random() < ratio) return parent;
  return trace.setSpanContext(parent, { ...client, traceFlags: TraceFlags.NONE });
}

/** The context of a `traceparent`; the current one if the text is invalid. */
function parseTraceParent(text: unknown) {
  const match = typeof text === 'string' && /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text);
  if (!match) return context.active();
  const [, traceId, spanId, flags] = match as unknown as [string, string, string, string];
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags, isRemote: true });
}

const OF_POSTGRES = { 'db.system.name': 'postgresql' };

/** Functions of Postgres itself, which say nothing about a statement. */
const OF_THE_SERVER = /^(unnest|generate_series|jsonb?_\w+|lateral)$/;

/**
 * A short name for a statement: the function that it calls, or what it does to its first table. Never contains
 * values.
 */
export function nameStatement(text: string): string {
  const called = [...text.matchAll(/\bfrom (\w+)\s*\(/g)].find(([, name]) => !OF_THE_SERVER.test(name!));
  if (called) return `call ${called[1]}`;
  const written = /\b(insert into|update|delete from) (\w+)/.exec(text);
  if (written) return `${written[1]!.split(' ')[0]} ${written[2]}`;
  const read = /\bselect (\w+)\(/.exec(text.trim()) ?? undefined;
  return read && !/\bfrom\b/.test(text)
    ? `call ${read[1]}`
    : `read ${/\bfrom (\w+)/.exec(text)?.[1] ?? ''}`.trim();
}

/** Names the span after the texts of its statement, without the values between them. */
const named =
  <T>(run: (sql: Sql) => Statement<T>, rename: RenameSpan) =>
  (sql: Sql): Statement<T> => {
    const statement = run(sql) as Statement<T> & { strings?: readonly string[] };
    if (statement.strings) rename(`postgres ${nameStatement(statement.strings.join(' '))}`);
    return statement;
  };

/** Wraps the pool with a span for each statement. */
export const traceDatabase = (database: Database, tracing: Tracing): Database => ({
  sql: database.sql,
  get gauges() {
    return database.gauges;
  },
  at: (userId) => traceDatabase(database.at(userId), tracing),
  read: (run, deadlineMs) =>
    tracing.span('postgres read', OF_POSTGRES, (rename) => database.read(named(run, rename), deadlineMs)),
  readShort: (run, deadlineMs) =>
    tracing.span('postgres read', OF_POSTGRES, (rename) =>
      database.readShort(named(run, rename), deadlineMs),
    ),
  write: (run) => tracing.span('postgres write', OF_POSTGRES, (rename) => database.write(named(run, rename))),
  close: (graceMs) => database.close(graceMs),
});

const traceLimiter = (limiter: RateLimiter, { span }: Tracing): RateLimiter => ({
  refusal: (key, limit, group) => limiter.refusal(key, limit, group),
  consume: (key, limit, group) =>
    span('redis rate limit', { 'db.system.name': 'redis' }, () => limiter.consume(key, limit, group)),
});

const tracePending = (pending: PendingValues, { span }: Tracing): PendingValues => ({
  keep: (kind, key, value) =>
    span('redis keep', { 'db.system.name': 'redis' }, () => pending.keep(kind, key, value)),
  take: (kind, key) => span('redis take', { 'db.system.name': 'redis' }, () => pending.take(kind, key)),
});

/** Wraps the coordination with a span for each Redis call that a request waits for. */
export const traceCoordination = (coordination: Coordination, tracing: Tracing): Coordination => ({
  limiters: Object.fromEntries(
    Object.entries(coordination.limiters).map(([name, limiter]) => [name, traceLimiter(limiter, tracing)]),
  ) as Limiters,
  notifier: coordination.notifier,
  imports: {
    add: (id) =>
      tracing.span('redis queue import', { 'db.system.name': 'redis' }, () => coordination.imports.add(id)),
    startWorker: (concurrency) => coordination.imports.startWorker(concurrency),
    stopWorker: (graceMs) => coordination.imports.stopWorker(graceMs),
  },
  pending: tracePending(coordination.pending, tracing),
  get state() {
    return coordination.state;
  },
  get away() {
    return coordination.away;
  },
  counters: coordination.counters,
  clock: coordination.clock,
  close: () => coordination.close(),
});
