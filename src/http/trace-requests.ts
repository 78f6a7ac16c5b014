import { context, SpanKind, trace } from '@opentelemetry/api';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseTraceParent, tracer } from '../observability/tracing.ts';

/** Gives every request a span that continues the client's trace. To be added before all other hooks. */
export function traceRequests(app: FastifyInstance): void {
  const contexts = new WeakMap<FastifyRequest, ReturnType<typeof context.active>>();
  app.addHook('onRequest', (request, _reply, done) => {
    const parent = parseTraceParent(request.headers.traceparent);
    const name = `POST ${request.routeOptions.url ?? 'unknown'}`;
    const begun = trace.setSpan(parent, tracer().startSpan(name, { kind: SpanKind.SERVER }, parent));
    contexts.set(request, begun);
    context.with(begun, done);
  });
  // Reading the body left the context behind: its events belong to the socket.
  app.addHook('preValidation', (request, _reply, done) => context.with(contexts.get(request)!, done));
  app.addHook('onResponse', async (request, reply) => {
    const ended = trace.getSpan(contexts.get(request)!);
    ended?.setAttributes({ 'http.response.status_code': reply.statusCode, 'request.id': request.id });
    ended?.end();
  });
}
