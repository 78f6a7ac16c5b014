import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { Semaphore } from '../concurrency/semaphore.ts';
import type { Context } from '../context.ts';
import type { RateLimiter } from '../coordination/port.ts';
import { ApiError, rateLimited } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/resources.ts';
import type { PresentedToken } from '../domain/tokens.ts';
import type { Credential } from '../observability/metrics.ts';
import { addressKey, clientAddress, retryAfterSeconds } from './quota-headers.ts';

/**
 * Limits guesses of invite codes and tokens. Only failures count, and they count across all replicas. Before an
 * attempt, only this replica's memory is checked, so a correct attempt needs no call to Redis. In this file, a network
 * is an IPv4 address or a /64 network of IPv6.
 */

/** The error for a lookup that gets no permit of `lookUpPermits`. */
class NoPermit extends Error {}

/**
 * Permits to look up tokens for networks that have used up their budget of failures. One lookup of each network runs at
 * a time. Up to 100 other lookups of that network wait, each for at most one second.
 */
const lookUpPermits = new Semaphore<string>({
  permits: 1,
  maxWaiting: 100,
  waitMs: 1_000,
  refusalError: () => new NoPermit(),
});

/** The number of failures that a limiter admits for one key in each window. */
interface Budget {
  limiter: RateLimiter;
  key: string;
  limit: number;
}

/**
 * An attempt to use a credential that can be guessed. An error with one of the `failureCodes` counts as a failure in
 * each of the budgets.
 */
interface Attempt {
  credential: Credential;
  budgets: readonly Budget[];
  failureCodes: readonly ErrorCode[];
}

/**
 * Wrong codes allowed per hour for each e-mail address. Each network may also send this many wrong codes per hour in
 * requests that name an e-mail address.
 */
const NAMED_FAILURES_PER_HOUR = 10;

/** Failed lookups of tokens allowed per minute for each network. */
const TOKEN_FAILURES_PER_MINUTE = 600;

/**
 * Runs an exchange of an invite code. Throws `RATE_LIMITED` if a budget is used up. Requests that name an e-mail
 * address have their own budgets. So somebody who guesses codes without an address cannot block the requests that name
 * one.
 */
export function limitInviteFailures<Result>(
  context: Context,
  request: FastifyRequest,
  emailKey: string | undefined,
  exchange: () => Promise<Result>,
): Promise<Result> {
  const { inviteFailures, namedInviteFailures } = context.coordination.limiters;
  const sharedBudget = { limiter: inviteFailures, key: 'all', limit: context.config.inviteFailuresPerMinute };
  const invite = { credential: 'invite', failureCodes: ['NOT_FOUND'] } as const;
  if (emailKey === undefined)
    return runWithinBudgets(context, { ...invite, budgets: [sharedBudget] }, exchange);
  const namedBudget = { limiter: namedInviteFailures, limit: NAMED_FAILURES_PER_HOUR };
  const budgets = [
    { ...namedBudget, key: `email:${hash('sha256', emailKey, 'base64url')}` },
    { ...namedBudget, key: `network:${addressKey(clientAddress(request))}` },
  ];
  return runWithinBudgets(context, { ...invite, budgets }, exchange);
}

/**
 * Looks up a token that this replica does not remember. Once the budget of the client's network is used up, the lookups
 * of this network run one at a time. From then on, a wrong token gives `RATE_LIMITED`, and so does a lookup that gets
 * no permit. These limits do not apply to a token that was valid when this replica last looked it up.
 */
export function limitTokenFailures<Result>(
  context: Context,
  request: FastifyRequest,
  token: PresentedToken,
  lookUp: () => Promise<Result>,
): Promise<Result> {
  if (context.principals.hasSeen(token)) return lookUp();
  const { tokenFailures: limiter } = context.coordination.limiters;
  const key = addressKey(clientAddress(request));
  const budget = { limiter, key, limit: TOKEN_FAILURES_PER_MINUTE };
  const bearer = {
    credential: 'bearer',
    budgets: [budget],
    failureCodes: ['INVALID_TOKEN', 'ACCOUNT_SUSPENDED'],
  } as const;
  const lookUpCounted = () => runAndCountFailure(context, bearer, lookUp);
  const refusal = limiter.refusal(key, budget.limit);
  if (refusal === undefined) return lookUpCounted();
  return lookUpPermits.run(key, lookUpCounted).catch((error: unknown) => {
    throw error instanceof NoPermit ? countRefusal(context, 'bearer', refusal.resetMs) : error;
  });
}

/** Counts a refused attempt, and returns its error. */
function countRefusal({ metrics }: Context, credential: Credential, resetMs: number): ApiError {
  metrics.guessed(credential, 'refused');
  return rateLimited(
    retryAfterSeconds(resetMs),
    `too many wrong ${credential === 'invite' ? 'invite codes' : 'tokens'} were sent`,
  );
}

/** Runs an attempt. If one of its budgets is used up, throws `RATE_LIMITED` instead. */
function runWithinBudgets<Result>(
  context: Context,
  attempt: Attempt,
  run: () => Promise<Result>,
): Promise<Result> {
  for (const { limiter, key, limit } of attempt.budgets) {
    const refusal = limiter.refusal(key, limit);
    if (refusal !== undefined) throw countRefusal(context, attempt.credential, refusal.resetMs);
  }
  return runAndCountFailure(context, attempt, run);
}

/**
 * Runs an attempt. If it fails with one of its `failureCodes`, counts the failure in each budget. If a budget does not
 * admit the failure, throws `RATE_LIMITED` instead of the error.
 */
async function runAndCountFailure<Result>(
  context: Context,
  { credential, budgets, failureCodes }: Attempt,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ApiError && failureCodes.includes(error.code))) throw error;
    const quotas = await Promise.all(budgets.map(({ limiter, key, limit }) => limiter.consume(key, limit)));
    const refused = quotas.find(({ admitted }) => !admitted);
    // Once a budget is used up, every failure gets the same response. So the response does not reveal, for example,
    // that the token is right but its account is suspended.
    if (refused !== undefined) throw countRefusal(context, credential, refused.resetMs);
    context.metrics.guessed(credential, 'failed');
    throw error;
  }
}
