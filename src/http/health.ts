import type { FastifyInstance } from 'fastify';
import type { Context } from '../context.ts';
import { isNamedFault } from '../store/database-faults.ts';
import type { DatabaseState } from '../store/probe.ts';

/** For the operator and the platform: whether the process is alive, and whether it wants requests. */

/** What an operator can act on by name; everything else is `unreachable`. */
const nameState = (state: DatabaseState): string =>
  state === 'reachable' || isNamedFault(state) ? state : 'unreachable';

/**
 * Adds `/livez` (200 while the event loop runs) and `/readyz` (503 while the process drains). A replica that has lost
 * its database or Redis stays ready: every other replica has lost them too, and its JSON 503 with `Retry-After`
 * serves a client better than a gateway without any replica. `/readyz` names what is away all the same.
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
