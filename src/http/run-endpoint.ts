import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { Endpoints } from '../domain/resources.ts';
import { parseBody } from '../domain/validation.ts';
import { requirePrincipal, requireScope } from './authentication.ts';
import { refuseLongRead } from './backlog.ts';
import type { Route } from './route.ts';

/**
 * Runs an endpoint of the API for another interface, such as MCP. Checks the scope and the body, as the API does. The
 * caller holds one of the user's permits (`holdPermit`).
 */
export type RunEndpoint = <Path extends keyof Endpoints>(
  path: Path,
  body: Endpoints[Path]['request'],
) => Promise<Endpoints[Path]['response']>;

/** Everything that an interface such as MCP needs to run endpoints. */
export interface EndpointRunner {
  context: Context;
  routes: readonly Route[];
}

/**
 * Returns a function that runs endpoints as the principal of an authenticated request. The request counts once against
 * the rate limits, however many endpoints it runs.
 */
export function runEndpointsFor(
  { context, routes }: EndpointRunner,
  request: FastifyRequest,
  reply: FastifyReply,
): RunEndpoint {
  return async (path, requestBody) => {
    const principal = requirePrincipal(request);
    const route = routes.find((each) => each.path === path);
    if (route === undefined || route.scope === 'public') throw new Error(`${path} takes no principal`);
    requireScope(route, principal);
    const body = parseBody(route.body, requestBody);
    const result = await route.handle({ context, body, request, reply, principal });
    const text = typeof result === 'string' ? result : JSON.stringify(result);
    if (route.scope === 'read') refuseLongRead(context, request, text);
    return JSON.parse(text);
  };
}
