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

/** Traces by OpenTelemetry: request, SQL, Redis, job; across the queue. Nothing of it is loaded where it is not set. */

/** Where spans begin and end. */
export interface Tracing {
  /** Runs within a span, a child of the one at hand; a rejection marks it. */
  span<T>(name: string, attributes: Attributes, run: () => Promise<T>): Promise<T>;
  /** Runs within a span that continues a trace of another process. */
  resume<T>(traceParent: string | null, name: string, run: () => Promise<T>): Promise<T>;
  /** The span at hand in the form of the W3C's `traceparent`. */
  readonly traceParent: string | undefined;
  /** Sends what is left. */
  close(): Promise<void>;
}

/** Costs a call. */
export const noTracing: Tracing = {
  span: (_name, _attributes, run) => run(),
  resume: (_traceParent, _name, run) => run(),
  traceParent: undefined,
  close: async () => {},
};

/** Opens tracing to an OTLP collector (HTTP); `ratio` of the traces that begin here are recorded. */
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

/** Where spans of this service begin. */
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
    // The name only: messages of the database may hold values.
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

/** The context to continue; the one at hand where there is no usable `traceparent`. */
export function parseTraceParent(text: unknown) {
  const match = typeof text === 'string' && /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text);
  if (!match) return context.active();
  const [, traceId, spanId, flags] = match as unknown as [string, string, string, string];
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags, isRemote: true });
}

/** The same pool, each statement in a span. */
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

/** The same coordination, what goes to Redis for a request in spans. */
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
