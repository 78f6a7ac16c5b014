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
import type { Coordination, Limiters, RateLimiter } from '../coordination/port.ts';
import type { Database, Sql, Statement } from '../store/driver/database.ts';
import { sqlStateOf } from '../store/driver/errors.ts';
import { VERSION } from './version.ts';

/**
 * OpenTelemetry traces of requests, with their SQL statements, their Redis calls, and the imports that they queue for a
 * worker. Names and attributes follow OpenTelemetry's semantic conventions for databases and messaging. The SDK is
 * loaded only if a collector is configured.
 */

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

/** The name, kind and attributes of a span. */
interface SpanFacts {
  name: string;
  kind: SpanKind;
  attributes: Attributes;
}

/**
 * Runs the function in a child span of the active span. A rejection marks the child span as failed. If no span is
 * active, as in a sweep or a probe, the function runs without a span. If sweeps and probes had spans, an idle service
 * would record hardly any other traces.
 */
function runInSpan<T>(
  { name, ...options }: SpanFacts,
  run: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  if (trace.getActiveSpan() === undefined) return run(undefined);
  return tracer().startActiveSpan(name, options, (span) => runAndEnd(span, () => run(span)));
}

/** The queue of imports, as both sides of it name it. */
const IMPORT_QUEUE = { 'messaging.system': 'bullmq', 'messaging.destination.name': 'imports' };

/** Runs an import in a new span that continues the trace of the request that queued it. */
export function resumeTrace<T>(traceParent: string | null, run: () => Promise<T>): Promise<T> {
  const operation = { 'messaging.operation.name': 'process', 'messaging.operation.type': 'process' };
  const options = { kind: SpanKind.CONSUMER, attributes: { ...IMPORT_QUEUE, ...operation } };
  return tracer().startActiveSpan('process imports', options, parseTraceParent(traceParent), (span) =>
    runAndEnd(span, run),
  );
}

async function runAndEnd<T>(span: Span, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    // The span gets only codes and names of errors, because messages of the database may contain row values.
    const sqlState = sqlStateOf(error);
    if (sqlState !== undefined) span.setAttribute('db.response.status_code', sqlState);
    const type = sqlState ?? (error instanceof Error ? error.name : '_OTHER');
    span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR, message: type });
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
const WRITTEN_TABLE =
  /(?<!\b(for|key|do) )\b(?<action>insert(?= into)|update|delete(?= from)) ((into|from) )?(?<table>\w+)/;
const SELECTED_FUNCTION = /\bselect (?<name>\w+)\(/;
const READ_TABLE = /\bfrom (?<table>\w+)/;

/**
 * Describes a statement by its operation and its target: the function that it calls; if there is none, the first table
 * that it writes or reads. The attributes never contain values.
 */
export function describeStatement(text: string): Attributes {
  for (const { groups } of text.matchAll(FUNCTION_IN_FROM)) {
    const name = groups?.name ?? '';
    if (!BUILT_IN.test(name)) return describeCall(name);
  }
  const { action, table: written } = WRITTEN_TABLE.exec(text)?.groups ?? {};
  if (action !== undefined && written !== undefined) return describeQuery(action.toUpperCase(), written);
  const selectedFunction = SELECTED_FUNCTION.exec(text)?.groups?.name;
  if (selectedFunction !== undefined && !/\bfrom\b/.test(text)) return describeCall(selectedFunction);
  return describeQuery('SELECT', READ_TABLE.exec(text)?.groups?.table);
}

const describeCall = (name: string): Attributes => ({
  'db.query.summary': `CALL ${name}`,
  'db.operation.name': 'CALL',
  'db.stored_procedure.name': name,
});

const describeQuery = (operation: string, table: string | undefined): Attributes => ({
  'db.query.summary': table === undefined ? operation : `${operation} ${table}`,
  'db.operation.name': operation,
  ...(table !== undefined && { 'db.collection.name': table }),
});

const POSTGRES_SPAN = {
  name: 'postgresql',
  kind: SpanKind.CLIENT,
  attributes: { 'db.system.name': 'postgresql' },
};

/**
 * Wraps `run` so that the span describes the statement that `run` builds. Fragments are built before the statement that
 * contains them, so the last call of the tag is the statement.
 */
const describingStatement =
  <T>(run: (sql: Sql) => Statement<T>, span: Span) =>
  (sql: Sql): Statement<T> => {
    let text = '';
    const recordingSql = new Proxy(sql, {
      apply(target, self, args) {
        const [strings] = args;
        if (Array.isArray(strings) && 'raw' in strings) text = strings.join(' ');
        return Reflect.apply(target, self, args);
      },
    });
    const statement = run(recordingSql);
    const attributes = describeStatement(text);
    span.setAttributes(attributes).updateName(String(attributes['db.query.summary']));
    return statement;
  };

/** Wraps a pool so that each statement has a span. */
export function traceDatabase(database: Database): Database {
  const runTraced = <T>(
    run: (sql: Sql) => Statement<T>,
    send: (run: (sql: Sql) => Statement<T>) => Promise<T>,
  ): Promise<T> =>
    runInSpan(POSTGRES_SPAN, (span) => send(span === undefined ? run : describingStatement(run, span)));
  return {
    sql: database.sql,
    get gauges() {
      return database.gauges;
    },
    at: (userId) => traceDatabase(database.at(userId)),
    read: (run, deadlineMs) => runTraced(run, (traced) => database.read(traced, deadlineMs)),
    readShort: (run, deadlineMs) => runTraced(run, (traced) => database.readShort(traced, deadlineMs)),
    write: (run) => runTraced(run, (traced) => database.write(traced)),
    close: (graceMs) => database.close(graceMs),
  };
}

/** Describes a call to Redis by its command and what the call is for. */
const redisSpan = (command: string, purpose: string): SpanFacts => ({
  name: `${command} ${purpose}`,
  kind: SpanKind.CLIENT,
  attributes: {
    'db.system.name': 'redis',
    'db.operation.name': command,
    'db.query.summary': `${command} ${purpose}`,
  },
});

const LIMIT_SPAN = redisSpan('EVALSHA', 'rate limit');
const KEEP_SPAN = redisSpan('EVAL', 'keep');
const TAKE_SPAN = redisSpan('GETDEL', 'take');
const QUEUE_SPAN: SpanFacts = {
  name: 'send imports',
  kind: SpanKind.PRODUCER,
  attributes: { ...IMPORT_QUEUE, 'messaging.operation.name': 'send', 'messaging.operation.type': 'send' },
};

const traceLimiter = (limiter: RateLimiter): RateLimiter => ({
  refusal: (key, limit) => limiter.refusal(key, limit),
  consume: (key, limit) => runInSpan(LIMIT_SPAN, () => limiter.consume(key, limit)),
  peek: (key, limit) => runInSpan(LIMIT_SPAN, () => limiter.peek(key, limit)),
});

/** Wraps the coordination so that each Redis call that a request waits for has a span. */
export const traceCoordination = (coordination: Coordination): Coordination => ({
  limiters: Object.fromEntries(
    Object.entries(coordination.limiters).map(([name, limiter]) => [name, traceLimiter(limiter)]),
  ) as Limiters,
  notifier: coordination.notifier,
  imports: {
    add: (id) => runInSpan(QUEUE_SPAN, () => coordination.imports.add(id)),
    startWorker: (concurrency) => coordination.imports.startWorker(concurrency),
    stopWorker: (graceMs) => coordination.imports.stopWorker(graceMs),
  },
  pending: {
    keep: (kind, key, value) => runInSpan(KEEP_SPAN, () => coordination.pending.keep(kind, key, value)),
    take: (kind, key) => runInSpan(TAKE_SPAN, () => coordination.pending.take(kind, key)),
    takeIfEqual: (kind, key, value) =>
      runInSpan(TAKE_SPAN, () => coordination.pending.takeIfEqual(kind, key, value)),
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
