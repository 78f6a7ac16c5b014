import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { isNamedFault } from '../store/database-faults.ts';
import type { DatabaseState } from '../store/probe.ts';

/** Endpoints for operators and the platform: is the process alive, and does it accept requests? */

/** Whether a route is one of them. */
export const isProbe = (route: string | undefined): boolean => route === '/livez' || route === '/readyz';

/** Only faults that an operator can act on are named; all others are `unreachable`. */
const nameState = (state: DatabaseState): string =>
  state === 'reachable' || isNamedFault(state) ? state : 'unreachable';

/**
 * Adds `/livez` (200 while the event loop runs) and `/readyz` (503 while the process drains). A replica stays ready
 * when it loses its database or Redis. All replicas lose them together, and a response with `Retry-After` serves clients
 * better than a gateway without replicas. `/readyz` still reports the state of both.
 */
export function healthRoutes(
  app: FastifyInstance,
  { coordination, databaseFaults, lifecycle, probe }: Context,
): void {
  app.get('/livez', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const stores = {
      database: databaseFaults.current ?? nameState(await probe.check()),
      redis: coordination.state,
    };
    if (!lifecycle.draining) return { status: 'ready', ...stores };
    return reply.code(503).send({ status: 'not ready', reasons: ['draining'], ...stores });
  });
}
