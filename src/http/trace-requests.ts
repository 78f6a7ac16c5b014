import { context, SpanKind, trace } from '@opentelemetry/api';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { continueClientTrace, tracer } from '../observability/tracing.ts';

const PROBES: readonly (string | undefined)[] = ['/livez', '/readyz'];

/**
 * Gives every request except probes a span that continues the client's trace, and adds the trace id to its log lines.
 * Register this before all other hooks. `ratio` is the share of recorded traces.
 */
export function traceRequests(app: FastifyInstance, ratio: number): void {
  const contexts = new WeakMap<FastifyRequest, ReturnType<typeof context.active>>();
  app.addHook('onRequest', (request, _reply, done) => {
    const { url } = request.routeOptions;
    if (PROBES.includes(url)) return done();
    const parent = continueClientTrace(request.headers.traceparent, ratio);
    const name = `${request.method} ${url ?? 'unknown'}`;
    const begun = trace.setSpan(parent, tracer().startSpan(name, { kind: SpanKind.SERVER }, parent));
    contexts.set(request, begun);
    request.log = request.log.child({ trace: trace.getSpan(begun)!.spanContext().traceId });
    context.with(begun, done);
  });
  // Reading the body loses the context, because its events belong to the socket.
  app.addHook('preValidation', (request, _reply, done) =>
    context.with(contexts.get(request) ?? context.active(), done),
  );
  app.addHook('onResponse', async (request, reply) => {
    const begun = contexts.get(request);
    const span = begun && trace.getSpan(begun);
    span?.setAttributes({ 'http.response.status_code': reply.statusCode, 'request.id': request.id });
    span?.end();
  });
}
