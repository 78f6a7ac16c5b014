import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { Group } from '../coordination/port.ts';
import { ApiError, invalidToken, permissionDenied } from '../domain/errors.ts';
import type { PresentedToken, Principal } from '../domain/tokens.ts';
import { findPrincipal } from '../store/tokens.ts';
import { limitTokenFailures } from './brute-force-limiter.ts';
import { toApiError } from './error-responses.ts';
import { addressKey, clientAddress, removeQuotaHeaders, requireQuota } from './quota-headers.ts';
import type { PrincipalRoute } from './route.ts';

/**
 * Where the token of a request is checked: token, rate limit, scope, in this order (decision 1), before a byte of the body is
 * read. The statement of the operation checks the token once more (`tokenIsValid` in `store/tokens.ts`; of a
 * write, `token_is_valid` in `sql/functions/`).
 */

/** What a route needs of a token. */
type Needs = Pick<PrincipalRoute, 'scope' | 'needsSession'>;

/**
 * Finds the principal and counts the request; throws `INVALID_TOKEN`, `RATE_LIMITED` or `PERMISSION_DENIED`. A token seen
 * lately is not looked up: the operation's own statement checks it; where the limiter refused it lately as well, it is
 * refused from memory, at once: a throw, not a rejection.
 */
export function authenticate(
  context: Context,
  needs: Needs,
  token: PresentedToken | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (token === undefined) throw invalidToken();
  const remembered = context.principals.find(token);
  if (remembered !== undefined) {
    const standing = context.coordination.limiters.tokens.refusal(...requestLimits(context, remembered));
    if (standing !== undefined) requireQuota(reply, standing);
  }
  return admitToken(context, needs, token, remembered, request, reply);
}

/** What a request of this principal is counted under: its token, and its account, each with its limit (spec 8). */
function requestLimits({ config }: Context, { key, userId, isPremium }: Principal): [string, number, Group] {
  const account = `{u${userId}}`;
  const limit = isPremium ? config.rateLimitRequestsPremium : config.rateLimitRequests;
  const accountLimit = isPremium
    ? config.rateLimitRequestsPerAccountPremium
    : config.rateLimitRequestsPerAccount;
  return [`${account}:${key}`, limit, { key: account, limit: accountLimit }];
}

async function admitToken(
  context: Context,
  needs: Needs,
  token: PresentedToken,
  remembered: Principal | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (remembered === undefined) context.overload.refuseLookup();
  const principal =
    remembered ?? (await limitTokenFailures(context, request, token, () => lookUp(context, token)));
  request.principal = principal;
  request.principalIsFresh = remembered === undefined;
  const { tokens } = context.coordination.limiters;
  requireQuota(reply, await tokens.consume(...requestLimits(context, principal)));
  context.overload.refuse(principal.userId);
  requireScope(needs, principal);
}

/** Throws `PERMISSION_DENIED` for a principal whose token does not suffice. */
export function requireScope({ scope, needsSession }: Needs, principal: Principal): void {
  if (needsSession && principal.kind !== 'session')
    throw permissionDenied('this needs a session, not an API token');
  if (scope === 'write' && principal.scope !== 'write')
    throw permissionDenied('the token has scope read, not write');
}

async function lookUp(context: Context, token: PresentedToken): Promise<Principal> {
  const principal = await findPrincipal(context.database, token).catch((error: unknown) => {
    if (toApiError(error)?.code === 'ACCOUNT_SUSPENDED') context.principals.forget(token);
    throw error;
  });
  if (principal === undefined) {
    context.principals.forget(token);
    throw invalidToken();
  }
  context.principals.add(principal);
  if (principal.isUseDue) context.lastUses.add(principal);
  return principal;
}

/** Limits a request without a token by the client's address (decision 25), counted with others of its kind. */
export async function limitAddress(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  counted: 'addresses' | 'logins' = 'addresses',
): Promise<void> {
  const addresses = context.coordination.limiters[counted];
  const limit = context.config.rateLimitRequests;
  const key = addressKey(clientAddress(request));
  requireQuota(reply, addresses.refusal(key, limit) ?? (await addresses.consume(key, limit)), 'address');
  context.overload.refuse();
}

/**
 * For an error response to a principal who was found before the operation's statement ran. Looks the token up again if the
 * statement found it invalid or never ran. Forgets a token that is not valid any more, and throws `INVALID_TOKEN` or
 * `ACCOUNT_SUSPENDED`, so that such a token gets no other error.
 */
export async function confirmPrincipal(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<void> {
  const principal = request.principal!;
  const code = toApiError(error)?.code;
  const isInvalid = code === 'INVALID_TOKEN';
  const isUnchecked = code === 'VALIDATION_ERROR' || code === 'PERMISSION_DENIED';
  if (!isInvalid && !(isUnchecked && !request.principalIsFresh)) return;
  const refusal = await findRefusal(context, principal).catch((fault: unknown) => {
    if (isInvalid) return invalidToken();
    throw fault;
  });
  if (refusal === undefined && !isInvalid) return;
  context.principals.forget(principal);
  removeQuotaHeaders(reply);
  throw refusal ?? invalidToken();
}

/** Why the token is refused now; undefined if it is valid. */
async function findRefusal({ database }: Context, token: PresentedToken): Promise<ApiError | undefined> {
  try {
    return (await findPrincipal(database, token)) === undefined ? invalidToken() : undefined;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'ACCOUNT_SUSPENDED') return error;
    throw error;
  }
}
