import { type Attributes, context, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { continueClientTrace, tracer } from '../observability/tracing.ts';
import { isProbe } from './health.ts';
import { cutPath } from './report-requests.ts';

/**
 * Starts a span for every request except probes, and adds the trace id to the log lines of the request. The span
 * follows OpenTelemetry's semantic conventions for HTTP servers, and continues the client's trace, if there is one. It
 * has no query string, because queries may contain secrets. `ratio` is the share of traces to record. Hooks that need
 * the span must be added after this call.
 */
export function traceRequests(app: FastifyInstance, ratio: number): void {
  const spans = new WeakMap<FastifyRequest, Span>();
  app.addHook('onRequest', (request, reply, done) => {
    const { url } = request.routeOptions;
    if (isProbe(url)) return done();
    const parent = continueClientTrace(request.headers.traceparent, ratio);
    const name = url === undefined ? request.method : `${request.method} ${url}`;
    const span = tracer().startSpan(
      name,
      { kind: SpanKind.SERVER, attributes: describeRequest(request) },
      parent,
    );
    spans.set(request, span);
    reply.raw.once('close', () => endSpan(span, reply));
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
}

function describeRequest({ id, method, protocol, routeOptions, url }: FastifyRequest): Attributes {
  return {
    'http.request.method': method,
    ...(routeOptions.url !== undefined && { 'http.route': routeOptions.url }),
    'url.path': cutPath(url),
    'url.scheme': protocol,
    'request.id': id,
  };
}

/** Ends the span of a request whose response was sent or aborted. Only failures of the service mark it as failed. */
function endSpan(span: Span, { raw, statusCode }: FastifyReply): void {
  if (raw.headersSent) span.setAttribute('http.response.status_code', statusCode);
  if (raw.headersSent && statusCode >= 500) {
    span.setAttribute('error.type', String(statusCode)).setStatus({ code: SpanStatusCode.ERROR });
  } else if (!raw.writableFinished) span.setAttribute('error.type', 'response_aborted');
  span.end();
}
