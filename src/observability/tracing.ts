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
import type { Database } from '../store/database.ts';
import { VERSION } from './version.ts';

/**
 * Traces by OpenTelemetry: of requests, statements, calls of Redis, and jobs across the queue. Its SDK is loaded only
 * where a collector is configured.
 */

/** Begins and ends spans. */
export interface Tracing {
  /** Runs the function in a new span below the current one; a rejection marks the span as failed. */
  span<T>(name: string, attributes: Attributes, run: () => Promise<T>): Promise<T>;
  /** Runs the function in a new span that continues the trace of another process. */
  resume<T>(traceParent: string | null, name: string, run: () => Promise<T>): Promise<T>;
  /** The current span as a W3C `traceparent`. */
  readonly traceParent: string | undefined;
  /** Sends the spans that were not sent yet. */
  close(): Promise<void>;
}

/** Runs everything without spans. */
export const noTracing: Tracing = {
  span: (_name, _attributes, run) => run(),
  resume: (_traceParent, _name, run) => run(),
  traceParent: undefined,
  close: async () => {},
};

/** Opens tracing to an OTLP collector over HTTP. Records `ratio` of the traces that begin here. */
export async function openTracing(endpoint: string, ratio: number): Promise<Tracing> {
  const [sdk, { OTLPTraceExporter }, { AsyncLocalStorageContextManager }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/context-async-hooks'),
      import('@opentelemetry/resources'),
    ]);
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'bookmark-service', 'service.version': VERSION }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return {
    span,
    resume,
    close: () => provider.shutdown(),
    get traceParent() {
      return formatTraceParent();
    },
  };
}

/** The tracer that begins the spans of this service. */
export const tracer = () => trace.getTracer('bookmark-service', VERSION);

const span: Tracing['span'] = (name, attributes, run) =>
  tracer().startActiveSpan(name, { kind: SpanKind.CLIENT, attributes }, (active) => endWith(active, run));

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

/** The context of a `traceparent`; the current one where the text is not usable. */
export function parseTraceParent(text: unknown) {
  const match = typeof text === 'string' && /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text);
  if (!match) return context.active();
  const [, traceId, spanId, flags] = match as unknown as [string, string, string, string];
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags, isRemote: true });
}

/** The same pool, with a span for each statement. */
export const traceDatabase = (database: Database, { span }: Tracing): Database => ({
  sql: database.sql,
  get gauges() {
    return database.gauges;
  },
  read: (run, deadlineMs) =>
    span('postgres read', { 'db.system.name': 'postgresql' }, () => database.read(run, deadlineMs)),
  write: (run) => span('postgres write', { 'db.system.name': 'postgresql' }, () => database.write(run)),
  close: (graceMs) => database.close(graceMs),
});

const traceLimiter = (limiter: RateLimiter, { span }: Tracing): RateLimiter => ({
  refusal: (key, limit) => limiter.refusal(key, limit),
  consume: (key, limit) =>
    span('redis rate limit', { 'db.system.name': 'redis' }, () => limiter.consume(key, limit)),
});

/** The same coordination, with a span for each call of Redis that a request waits for. */
export const traceCoordination = (coordination: Coordination, tracing: Tracing): Coordination => ({
  limiters: Object.fromEntries(
    Object.entries(coordination.limiters).map(([name, limiter]) => [name, traceLimiter(limiter, tracing)]),
  ) as Limiters,
  wakes: coordination.wakes,
  imports: {
    add: (id) =>
      tracing.span('redis queue import', { 'db.system.name': 'redis' }, () => coordination.imports.add(id)),
    startWorker: (concurrency) => coordination.imports.startWorker(concurrency),
    stopWorker: (graceMs) => coordination.imports.stopWorker(graceMs),
  },
  get state() {
    return coordination.state;
  },
  counters: coordination.counters,
  clock: coordination.clock,
  close: () => coordination.close(),
});
