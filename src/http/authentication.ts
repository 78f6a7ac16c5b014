import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { Quota } from '../coordination/port.ts';
import { type ApiError, hasCode, invalidToken, permissionDenied } from '../domain/errors.ts';
import type { PresentedToken, Principal } from '../domain/tokens.ts';
import { findPrincipal } from '../store/tokens.ts';
import { limitTokenFailures } from './brute-force-limiter.ts';
import { toApiError } from './error-responses.ts';
import {
  addressKey,
  clientAddress,
  refuse,
  removeQuotaHeaders,
  requireQuota,
  setQuotaHeaders,
} from './quota-headers.ts';
import type { PrincipalRoute } from './route.ts';

/**
 * Checks a request's token, then the rate limit, then the scope (docs/contract.md, decision 1). All this comes before
 * the body is read. Later, the operation's SQL statement checks the token again. In reads, `tokenIsValid` of
 * `store/tokens.ts` does this; in writes, the functions in `sql/functions/` do.
 */

/** What a route requires of the token. */
type Needs = Pick<PrincipalRoute, 'scope' | 'needsSession'>;

/** What authentication needs of the process. */
type AuthenticationContext = Pick<
  Context,
  | 'config'
  | 'coordination'
  | 'database'
  | 'lastUses'
  | 'lookUpPermits'
  | 'metrics'
  | 'overload'
  | 'principals'
>;

/**
 * Finds the principal and counts the request. Throws `INVALID_TOKEN`, `ACCOUNT_SUSPENDED`, `RATE_LIMITED`,
 * `PERMISSION_DENIED`, or `UNAVAILABLE` under overload. Does not look up a token that this replica remembers, because
 * the operation's statement checks it. Throws synchronously if no token was presented, or if this replica already knows
 * that the token has reached its rate limit.
 */
export function authenticate(
  context: AuthenticationContext,
  needs: Needs,
  token: PresentedToken | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (token === undefined) throw invalidToken();
  const remembered = context.principals.find(token);
  if (remembered !== undefined) {
    const { tokens } = context.coordination.limiters;
    const refusal = tokens.refusal(remembered.key, tokenLimit(context, remembered));
    if (refusal !== undefined) requireQuota(reply, refusal, TOO_MANY_OF_TOKEN);
  }
  return admitToken(context, needs, token, remembered, request, reply);
}

const TOO_MANY_OF_TOKEN = 'too many requests with this token';

/** Returns the limit of the requests of a principal's token (docs/contract.md, section 8). */
const tokenLimit = ({ config }: Pick<Context, 'config'>, { isPremium }: Principal): number =>
  isPremium ? config.rateLimitRequestsPremium : config.rateLimitRequests;

/**
 * Counts a request of the token and, if the operator limits accounts, of the account. Throws `RATE_LIMITED` if a limit
 * refuses it. The rate-limit headers always describe the token.
 */
async function countRequest(
  context: Pick<Context, 'config' | 'coordination'>,
  principal: Principal,
  reply: FastifyReply,
): Promise<void> {
  const { config } = context;
  const { tokens, accounts } = context.coordination.limiters;
  const { key, userId, isPremium } = principal;
  const limit = tokenLimit(context, principal);
  const accountKey = String(userId);
  const accountLimit = isPremium
    ? config.rateLimitRequestsPerAccountPremium
    : config.rateLimitRequestsPerAccount;
  const refusal = accountLimit === undefined ? undefined : accounts.refusal(accountKey, accountLimit);
  if (refusal !== undefined) {
    // The token's request is not counted, because the account's limit refuses it anyway.
    setQuotaHeaders(reply, await tokens.peek(key, limit));
    throw refuseForAccount(reply, refusal);
  }
  requireQuota(reply, await tokens.consume(key, limit), TOO_MANY_OF_TOKEN);
  if (accountLimit === undefined) return;
  const quota = await accounts.consume(accountKey, accountLimit);
  if (!quota.admitted) throw refuseForAccount(reply, quota);
}

/** Returns the error for a request that the account's limit refused. A header says whose limit it was. */
function refuseForAccount(reply: FastifyReply, refusal: Quota): ApiError {
  reply.header('x-ratelimit-scope', 'account');
  return refuse(reply.request, refusal, 'too many requests of this account, across all its tokens');
}

async function admitToken(
  context: AuthenticationContext,
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
  await countRequest(context, principal, reply);
  context.overload.refuse(principal.userId);
  requireScope(needs, principal);
}

/** Throws `PERMISSION_DENIED` if the token's scope is not sufficient, or if the route needs a session token. */
export function requireScope({ scope, needsSession }: Needs, principal: Principal): void {
  if (needsSession && principal.kind !== 'session')
    throw permissionDenied('this needs a session, not an API token');
  if (scope === 'write' && principal.scope !== 'write')
    throw permissionDenied('the token has scope read, not write');
}

/**
 * Looks up a token in the database and remembers its principal. Records the use of the token if that is due. If the
 * token or its account is refused, forgets the token and throws `INVALID_TOKEN` or `ACCOUNT_SUSPENDED`.
 */
async function lookUp(
  context: Pick<Context, 'database' | 'lastUses' | 'principals'>,
  token: PresentedToken,
): Promise<Principal> {
  const principal = await findPrincipal(context.database, token).catch((error: unknown) => {
    if (hasCode(error, 'ACCOUNT_SUSPENDED')) context.principals.forget(token);
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

/** Returns the principal of a request. Throws `INVALID_TOKEN` if the request was not authenticated. */
export function requirePrincipal({ principal }: FastifyRequest): Principal {
  if (principal === undefined) throw invalidToken();
  return principal;
}

/**
 * Limits requests without a token by the client's address (docs/contract.md, decision 25). Throws `RATE_LIMITED`, or
 * `UNAVAILABLE` under overload. `limiterName` chooses the limiter.
 */
export async function limitAddress(
  context: Pick<Context, 'config' | 'coordination' | 'overload'>,
  request: FastifyRequest,
  reply: FastifyReply,
  limiterName: 'addresses' | 'logins' = 'addresses',
): Promise<void> {
  const limiter = context.coordination.limiters[limiterName];
  const limit = context.config.rateLimitRequests;
  const key = addressKey(clientAddress(request));
  requireQuota(reply, await limiter.consume(key, limit), 'too many requests from this address');
  context.overload.refuse();
}

/**
 * Looks the token up again before `error` is sent, but only if the operation's statement found the token invalid, or if
 * no statement has checked it for this request. If the statement or the lookup found the token invalid, forgets it and
 * throws `INVALID_TOKEN` or `ACCOUNT_SUSPENDED`, which the caller must send instead of `error`.
 */
export async function confirmPrincipal(
  context: Pick<Context, 'database' | 'principals'>,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<void> {
  const principal = requirePrincipal(request);
  const code = toApiError(error)?.code;
  const isInvalid = code === 'INVALID_TOKEN';
  // These errors may be thrown before the operation's statement has checked the token.
  const isEarly = code === 'VALIDATION_ERROR' || code === 'PERMISSION_DENIED';
  const isUnchecked = isEarly && !request.principalIsFresh;
  if (!isInvalid && !isUnchecked) return;
  const refusal = await findRefusal(context, principal).catch((fault: unknown) => {
    // If the operation's statement has already found the token invalid, the failed lookup does not matter.
    if (isInvalid) return invalidToken();
    throw fault;
  });
  if (refusal === undefined && !isInvalid) return;
  context.principals.forget(principal);
  removeQuotaHeaders(reply);
  throw refusal ?? invalidToken();
}

/** Returns the error for a token that is refused now; undefined if the token is valid. */
async function findRefusal(
  { database }: Pick<Context, 'database'>,
  token: PresentedToken,
): Promise<ApiError | undefined> {
  try {
    return (await findPrincipal(database, token)) === undefined ? invalidToken() : undefined;
  } catch (error) {
    if (hasCode(error, 'ACCOUNT_SUSPENDED')) return error;
    throw error;
  }
}
