import { context, type Span, SpanKind, trace } from '@opentelemetry/api';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { continueClientTrace, tracer } from '../observability/tracing.ts';
import { isProbe } from './health.ts';

/**
 * Starts a span for every request except probes, and adds the trace id to the log lines of the request. The span
 * continues the client's trace, if there is one. `ratio` is the share of traces to record. Hooks that need the span
 * must be added after this call.
 */
export function traceRequests(app: FastifyInstance, ratio: number): void {
  const spans = new WeakMap<FastifyRequest, Span>();
  app.addHook('onRequest', (request, _reply, done) => {
    const { url } = request.routeOptions;
    if (isProbe(url)) return done();
    const parent = continueClientTrace(request.headers.traceparent, ratio);
    const name = `${request.method} ${url ?? 'unknown'}`;
    const span = tracer().startSpan(name, { kind: SpanKind.SERVER }, parent);
    spans.set(request, span);
    request.log = request.log.child({ trace: span.spanContext().traceId });
    context.with(trace.setSpan(parent, span), done);
  });
  // The trace context is lost while the body is read, because the socket's events do not belong to the request. So this
  // hook sets it again.
  app.addHook('preValidation', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) done();
    else context.with(trace.setSpan(context.active(), span), done);
  });
  app.addHook('onResponse', async (request, reply) => {
    const span = spans.get(request);
    span?.setAttributes({ 'http.response.status_code': reply.statusCode, 'request.id': request.id });
    span?.end();
  });
}
