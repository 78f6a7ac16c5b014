import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { ping } from '../store/database.ts';

/** For whoever runs the service: is the process alive, and does it want requests. */

/** What keeps a process from serving; empty when it is ready. Redis away is no reason: limits and waits go on without it. */
export async function findUnready(context: Pick<Context, 'lifecycle' | 'database'>): Promise<string[]> {
  if (context.lifecycle.draining) return ['draining'];
  return (await ping(context.database)) ? [] : ['database'];
}

/** Adds `/livez` (the event loop turns) and `/readyz` (503 with the reasons while draining or without database). */
export function healthRoutes(app: FastifyInstance, context: Context): void {
  app.get('/livez', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const reasons = await findUnready(context);
    const redis = context.coordination.state;
    if (reasons.length === 0) return { status: 'ready', redis };
    return reply.code(503).send({ status: 'not ready', reasons, redis });
  });
}
