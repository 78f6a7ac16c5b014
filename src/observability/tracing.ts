import { randomUUID } from 'node:crypto';
import { context, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { Coordination, Limiters, RateLimiter } from '../coordination/port.ts';
import type { Database, Sql, Statement } from '../store/database.ts';
import { VERSION } from './version.ts';

/**
 * OpenTelemetry traces of requests, with their SQL statements, their Redis calls, and the imports that they queue for a
 * worker. The SDK is loaded only if a collector is configured.
 */

/** Renames the current span. */
type RenameSpan = (name: string) => void;

/** How to open tracing. */
interface TracingOptions {
  /** The url of the OTLP collector (HTTP). */
  endpoint: string;
  /** The share of traces to record, from 0 to 1. It applies to traces that begin in this process. */
  ratio: number;
  /** The role of the process. */
  role: string;
  /** Attributes that identify the process, keyed by name. They override those that the service sets. */
  resource: Readonly<Record<string, string>>;
}

/**
 * Starts to send traces to a collector. Before this call, the other functions of this file work but record no spans.
 * The returned function sends the pending spans and ends tracing.
 */
export async function openTracing({
  endpoint,
  ratio,
  role,
  resource,
}: TracingOptions): Promise<() => Promise<void>> {
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
  return async () => {
    await provider.shutdown();
    trace.disable();
    context.disable();
  };
}

/** Returns the tracer for the service's spans. */
export const tracer = () => trace.getTracer('bookmark-service', VERSION);

/**
 * Runs the function in a child span of the active span. A rejection marks the child span as failed. If no span is
 * active, as in a sweep or a probe, the function runs without a span. If sweeps and probes had spans, an idle service
 * would record hardly any other traces.
 */
function runInSpan<T>(name: string, system: string, run: (rename: RenameSpan) => Promise<T>): Promise<T> {
  if (trace.getActiveSpan() === undefined) return run(() => {});
  const attributes = { 'db.system.name': system };
  return tracer().startActiveSpan(name, { kind: SpanKind.CLIENT, attributes }, (active) =>
    runAndEnd(active, () => run((newName) => void active.updateName(newName))),
  );
}

/** Runs the function in a new span that continues the trace of another process. */
export const resumeTrace = <T>(traceParent: string | null, name: string, run: () => Promise<T>): Promise<T> =>
  tracer().startActiveSpan(name, { kind: SpanKind.CONSUMER }, parseTraceParent(traceParent), (active) =>
    runAndEnd(active, run),
  );

async function runAndEnd<T>(span: Span, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    // The span gets only the error's name, because messages of the database may contain row values.
    const message = error instanceof Error ? error.name : 'unknown';
    span.setStatus({ code: SpanStatusCode.ERROR, message });
    throw error;
  } finally {
    span.end();
  }
}

/** Returns the current span as a W3C `traceparent`; undefined if there is none. */
export function currentTraceParent(): string | undefined {
  const current = trace.getActiveSpan()?.spanContext();
  return (
    current && `00-${current.traceId}-${current.spanId}-${current.traceFlags.toString(16).padStart(2, '0')}`
  );
}

/**
 * Returns the trace context of a request, which continues the client's trace if `traceparent` is valid. Of the traces
 * that clients ask to record, only the fraction `ratio` is recorded. Otherwise a client could fill the collector.
 */
export function continueClientTrace(text: unknown, ratio: number) {
  const parent = parseTraceParent(text);
  const clientSpan = trace.getSpanContext(parent);
  if (clientSpan === undefined || Math.random() < ratio) return parent;
  return trace.setSpanContext(parent, { ...clientSpan, traceFlags: TraceFlags.NONE });
}

const TRACE_PARENT = /^00-(?<traceId>[0-9a-f]{32})-(?<spanId>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})$/;

/** Returns the context that a `traceparent` describes; the current context if the text is invalid. */
function parseTraceParent(text: unknown) {
  const parts = TRACE_PARENT.exec(typeof text === 'string' ? text : '')?.groups;
  if (parts === undefined) return context.active();
  const { traceId = '', spanId = '', flags = '' } = parts;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags, isRemote: true });
}

/** Built-in functions of Postgres. Their names do not tell what a statement is for. */
const BUILT_IN = /^(unnest|generate_series|jsonb?_\w+|lateral)$/;

const FUNCTION_IN_FROM = /\bfrom (?<name>\w+)\s*\(/g;
const WRITTEN_TABLE = /\b(?<action>insert into|update|delete from) (?<table>\w+)/;
const SELECTED_FUNCTION = /\bselect (?<name>\w+)\(/;
const READ_TABLE = /\bfrom (?<table>\w+)/;

/**
 * Returns a short name for a statement: the function that the statement calls; if there is none, what the statement
 * does to its first table. The name never contains values.
 */
export function nameStatement(text: string): string {
  for (const { groups } of text.matchAll(FUNCTION_IN_FROM)) {
    const name = groups?.name ?? '';
    if (!BUILT_IN.test(name)) return `call ${name}`;
  }
  const write = WRITTEN_TABLE.exec(text)?.groups;
  if (write?.action !== undefined) return `${write.action.split(' ')[0]} ${write.table}`;
  const selectedFunction = SELECTED_FUNCTION.exec(text)?.groups?.name;
  if (selectedFunction !== undefined && !/\bfrom\b/.test(text)) return `call ${selectedFunction}`;
  return `read ${READ_TABLE.exec(text)?.groups?.table ?? ''}`.trim();
}

/**
 * Wraps `run` so that the span is named after the statement. The name is made from the SQL text, without its values.
 */
const renamingSpan =
  <T>(run: (sql: Sql) => Statement<T>, rename: RenameSpan) =>
  (sql: Sql): Statement<T> => {
    const statement = run(sql) as Statement<T> & { strings?: readonly string[] };
    if (statement.strings) rename(`postgres ${nameStatement(statement.strings.join(' '))}`);
    return statement;
  };

/** Wraps a pool so that each statement has a span. */
export const traceDatabase = (database: Database): Database => ({
  sql: database.sql,
  get gauges() {
    return database.gauges;
  },
  at: (userId) => traceDatabase(database.at(userId)),
  read: (run, deadlineMs) =>
    runInSpan('postgres read', 'postgresql', (rename) =>
      database.read(renamingSpan(run, rename), deadlineMs),
    ),
  readShort: (run, deadlineMs) =>
    runInSpan('postgres read', 'postgresql', (rename) =>
      database.readShort(renamingSpan(run, rename), deadlineMs),
    ),
  write: (run) =>
    runInSpan('postgres write', 'postgresql', (rename) => database.write(renamingSpan(run, rename))),
  close: (graceMs) => database.close(graceMs),
});

const traceLimiter = (limiter: RateLimiter): RateLimiter => ({
  refusal: (key, limit, group) => limiter.refusal(key, limit, group),
  consume: (key, limit, group) =>
    runInSpan('redis rate limit', 'redis', () => limiter.consume(key, limit, group)),
});

/** Wraps the coordination so that each Redis call that a request waits for has a span. */
export const traceCoordination = (coordination: Coordination): Coordination => ({
  limiters: Object.fromEntries(
    Object.entries(coordination.limiters).map(([name, limiter]) => [name, traceLimiter(limiter)]),
  ) as Limiters,
  notifier: coordination.notifier,
  imports: {
    add: (id) => runInSpan('redis queue import', 'redis', () => coordination.imports.add(id)),
    startWorker: (concurrency) => coordination.imports.startWorker(concurrency),
    stopWorker: (graceMs) => coordination.imports.stopWorker(graceMs),
  },
  pending: {
    keep: (kind, key, value) =>
      runInSpan('redis keep', 'redis', () => coordination.pending.keep(kind, key, value)),
    take: (kind, key) => runInSpan('redis take', 'redis', () => coordination.pending.take(kind, key)),
  },
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
