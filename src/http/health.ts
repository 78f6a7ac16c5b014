import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { isNamedFault } from '../store/driver/database-faults.ts';
import type { DatabaseState } from '../store/driver/probe.ts';

/** Endpoints that tell the operator and the platform whether the process is alive and whether it accepts requests. */

/** Whether a route is one of the endpoints of this file. */
export const isProbe = (route: string | undefined): boolean => route === '/livez' || route === '/readyz';

/** Returns the state to report. A fault that an operator cannot act on is reported as `unreachable`. */
const nameState = (state: DatabaseState): string =>
  state === 'reachable' || isNamedFault(state) ? state : 'unreachable';

/**
 * Adds `/livez` (200 while the event loop runs) and `/readyz` (503 while the process drains). A replica that cannot
 * reach its database or Redis stays ready, because usually no other replica can reach them either. A response with
 * `Retry-After` then serves clients better than a gateway without replicas. `/readyz` still reports the states of the
 * database and Redis.
 */
export function healthRoutes(
  app: FastifyInstance,
  {
    coordination,
    databaseFaults,
    lifecycle,
    probe,
  }: Pick<Context, 'coordination' | 'databaseFaults' | 'lifecycle' | 'probe'>,
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
