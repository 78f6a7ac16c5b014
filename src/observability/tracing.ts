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
 * Traces by OpenTelemetry: of requests, statements, calls of Redis, and jobs across the queue. Its SDK is loaded only
 * where a collector is configured.
 */

/** Gives the span that has begun a better name. */
type RenameSpan = (name: string) => void;

/** Begins and ends spans. */
export interface Tracing {
  /** Runs the function in a new span below the active one; a rejection marks it as failed. Without one there is no span. */
  span<T>(name: string, attributes: Attributes, run: (rename: RenameSpan) => Promise<T>): Promise<T>;
  /** Runs the function in a new span that continues the trace of another process. */
  resume<T>(traceParent: string | null, name: string, run: () => Promise<T>): Promise<T>;
  /** The current span as a W3C `traceparent`. */
  readonly traceParent: string | undefined;
  /** Sends the spans that were not sent yet. */
  close(): Promise<void>;
}

/** Runs everything without spans. */
export const noTracing: Tracing = {
  span: (_name, _attributes, run) => run(() => {}),
  resume: (_traceParent, _name, run) => run(),
  traceParent: undefined,
  close: async () => {},
};

/** How tracing is opened. */
interface TracingOptions {
  /** Of the OTLP collector (HTTP). */
  endpoint: string;
  /** Share of the traces that begin here which is recorded. */
  ratio: number;
  /** What the process does. */
  role: string;
  /** What names the process besides; an attribute here stands above ours. */
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

/** The tracer that begins the spans of this service. */
export const tracer = () => trace.getTracer('bookmark-service', VERSION);

// What nobody asked for (sweeps, probes, scrapes) begins no trace: an idle service would send nothing else.
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
    // Only the error's name: messages of the database may hold values.
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
 * The context of a request: its client's trace, where that has a usable `traceparent`. It is recorded in the share that
 * ours are, for a client that asks for all of its own to be recorded would fill the collector.
 */
export function continueClientTrace(text: unknown, ratio: number) {
  const parent = parseTraceParent(text);
  const client = trace.getSpanContext(parent);
  if (client === undefined || Math.random() < ratio) return parent;
  return trace.setSpanContext(parent, { ...client, traceFlags: TraceFlags.NONE });
}

/** The context of a `traceparent`; the current one where the text is not usable. */
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

/** A statement in two words: the function that it calls, or what it does to its first table. Values are no part of it. */
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

/** Names the span by the statement that the driver was given: its texts, without the values between them. */
const named =
  <T>(run: (sql: Sql) => Statement<T>, rename: RenameSpan) =>
  (sql: Sql): Statement<T> => {
    const statement = run(sql) as Statement<T> & { strings?: readonly string[] };
    if (statement.strings) rename(`postgres ${nameStatement(statement.strings.join(' '))}`);
    return statement;
  };

/** The same pool, with a span for each statement. */
export const traceDatabase = (database: Database, { span }: Tracing): Database => ({
  sql: database.sql,
  get gauges() {
    return database.gauges;
  },
  read: (run, deadlineMs) =>
    span('postgres read', OF_POSTGRES, (rename) => database.read(named(run, rename), deadlineMs)),
  readShort: (run, deadlineMs) =>
    span('postgres read', OF_POSTGRES, (rename) => database.readShort(named(run, rename), deadlineMs)),
  write: (run) => span('postgres write', OF_POSTGRES, (rename) => database.write(named(run, rename))),
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

/** The same coordination, with a span for each call of Redis that a request waits for. */
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
