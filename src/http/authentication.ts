import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { invalidToken, permissionDenied } from '../domain/errors.ts';
import type { Caller, PresentedToken } from '../domain/tokens.ts';
import { findCaller } from '../store/tokens.ts';
import { limitTokenFailures } from './brute-force-limiter.ts';
import { toApiError } from './error-responses.ts';
import type { Overload } from './overload.ts';
import { addressKey, clientAddress, removeQuotaHeaders, requireQuota } from './quota-headers.ts';
import type { CallerRoute } from './route.ts';

/**
 * Where the token of a request is checked: token, rate limit, scope, in this order (decision 1), before a byte of the body is
 * read. The statement of the operation checks the token once more (`tokenIsValid` in `store/tokens.ts`; of a
 * write, `token_is_valid` in `sql/functions/`).
 */

/** What a route needs of a token. */
type Needs = Pick<CallerRoute, 'scope' | 'needsSession'>;

/**
 * Finds the caller and counts the request; throws `INVALID_TOKEN`, `RATE_LIMITED` or `PERMISSION_DENIED`. A token seen
 * lately is not looked up: the operation's own statement checks it; where the limiter refused it lately as well, it is
 * refused from memory, at once: a throw, not a rejection.
 */
export function authenticate(
  context: Context,
  overload: Overload,
  needs: Needs,
  token: PresentedToken | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (token === undefined) throw invalidToken();
  const remembered = context.callers.find(token);
  if (remembered !== undefined) {
    const { tokens } = context.coordination.limiters;
    const standing = tokens.refusal(token.key, requestLimit(context, remembered));
    if (standing !== undefined) requireQuota(reply, standing);
  }
  return admitToken(context, overload, needs, token, remembered, request, reply);
}

/** Requests that a token of this caller may send in any window. */
const requestLimit = ({ config }: Context, { isPremium }: Caller): number =>
  isPremium ? config.rateLimitRequestsPremium : config.rateLimitRequests;

async function admitToken(
  context: Context,
  overload: Overload,
  needs: Needs,
  token: PresentedToken,
  remembered: Caller | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (remembered === undefined) overload.refuseLookup();
  const caller =
    remembered ?? (await limitTokenFailures(context, request, token, () => lookUp(context, token)));
  request.caller = caller;
  request.callerIsFresh = remembered === undefined;
  const { tokens } = context.coordination.limiters;
  requireQuota(reply, await tokens.consume(token.key, requestLimit(context, caller)));
  overload.refuse(caller.userId);
  requireScope(needs, caller);
}

/** Throws `PERMISSION_DENIED` for a caller whose token does not suffice. */
export function requireScope({ scope, needsSession }: Needs, caller: Caller): void {
  if (needsSession && caller.kind !== 'session')
    throw permissionDenied('this needs a session, not an API token');
  if (scope === 'write' && caller.scope !== 'write')
    throw permissionDenied('the token has scope read, not write');
}

async function lookUp(context: Context, token: PresentedToken): Promise<Caller> {
  const caller = await findCaller(context.database, token);
  if (caller === undefined) {
    context.callers.forget(token);
    throw invalidToken();
  }
  context.callers.add(caller);
  if (caller.isUseDue) context.lastUses.add(caller);
  return caller;
}

/** Limits a request without a token by the client's address (decision 25), counted with others of its kind. */
export async function limitAddress(
  context: Context,
  overload: Overload,
  request: FastifyRequest,
  reply: FastifyReply,
  counted: 'addresses' | 'logins' = 'addresses',
): Promise<void> {
  const addresses = context.coordination.limiters[counted];
  const limit = context.config.rateLimitRequests;
  const key = addressKey(clientAddress(request));
  requireQuota(reply, addresses.refusal(key, limit) ?? (await addresses.consume(key, limit)));
  overload.refuse();
}

/**
 * For an error response to a remembered caller: forgets a token that the statement found invalid, and looks it up where
 * the statement never ran, so that a revoked token gets no other error than `INVALID_TOKEN`, which this then throws.
 */
export async function confirmCaller(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<void> {
  const caller = request.caller!;
  const code = toApiError(error)?.code;
  const isUnchecked = code === 'VALIDATION_ERROR' || code === 'PERMISSION_DENIED';
  const isInvalid =
    code === 'INVALID_TOKEN' || (isUnchecked && (await findCaller(context.database, caller)) === undefined);
  if (!isInvalid) return;
  context.callers.forget(caller);
  removeQuotaHeaders(reply);
  throw invalidToken();
}
