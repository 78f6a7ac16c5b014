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
 * Limits guesses of invite codes and tokens. Only failures count, across all replicas. Before an attempt, only this
 * replica's memory is checked, so a correct attempt costs no call to Redis.
 */

/** A lookup beyond its network's budget got no permit. */
class NoPermit extends Error {}

/** Beyond the budget, one lookup per network runs at a time. Up to 100 others wait, for one second each. */
const LOOK_UPS_BEYOND = { permits: 1, maxWaiting: 100, waitMs: 1_000 };

/** The permits of this process for lookups beyond the budget, by network. */
const beyondBudget = new Semaphore<string>({ ...LOOK_UPS_BEYOND, refusalError: () => new NoPermit() });

/** How many failures of one key a limiter admits per window. */
interface Budget {
  limiter: RateLimiter;
  key: string;
  limit: number;
}

/**
 * An attempt to use a credential that can be guessed. An error with one of `failureCodes` counts as a failure in each
 * budget.
 */
interface Attempt {
  credential: Credential;
  budgets: readonly Budget[];
  failureCodes: readonly ErrorCode[];
}

/** Wrong codes allowed per hour for one e-mail address, and for one network whose requests name addresses. */
const NAMED_FAILURES_PER_HOUR = 10;

/** Failed lookups of tokens allowed per minute and network. */
const TOKEN_FAILURES_PER_MINUTE = 600;

/**
 * Runs an exchange of an invite code. Throws `RATE_LIMITED` beyond a budget. Requests that name an e-mail address have
 * their own budgets, so that somebody who guesses codes without an address cannot lock them out.
 */
export function limitInviteFailures<Result>(
  context: Context,
  request: FastifyRequest,
  emailKey: string | undefined,
  exchange: () => Promise<Result>,
): Promise<Result> {
  const { inviteFailures, namedInviteFailures: limiter } = context.coordination.limiters;
  const everyone = { limiter: inviteFailures, key: 'all', limit: context.config.inviteFailuresPerMinute };
  const invite = { credential: 'invite', failureCodes: ['NOT_FOUND'] } as const;
  if (emailKey === undefined) return withinBudgets(context, { ...invite, budgets: [everyone] }, exchange);
  const limit = NAMED_FAILURES_PER_HOUR;
  const budgets = [
    { limiter, key: `email:${hash('sha256', emailKey, 'base64url')}`, limit },
    { limiter, key: `network:${addressKey(clientAddress(request))}`, limit },
  ];
  return withinBudgets(context, { ...invite, budgets }, exchange);
}

/**
 * Looks up a token that this replica does not remember. Once the network's budget is used up, lookups run one at a
 * time. Then a wrong token, and a lookup that gets no permit, give `RATE_LIMITED`. A token that this replica has seen
 * as valid is exempt.
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
  const lookUpCounted = () => counted(context, bearer, lookUp);
  const refusal = limiter.refusal(key, budget.limit);
  if (refusal === undefined) return lookUpCounted();
  return beyondBudget.run(key, lookUpCounted).catch((error: unknown) => {
    throw error instanceof NoPermit ? refuse(context, 'bearer', refusal.resetMs) : error;
  });
}

function refuse({ metrics }: Context, credential: Credential, resetMs: number): ApiError {
  metrics.guessed(credential, 'refused');
  return rateLimited(
    retryAfterSeconds(resetMs),
    `too many wrong ${credential === 'invite' ? 'invite codes' : 'tokens'} were sent`,
  );
}

/** Runs an attempt unless one of its budgets is used up. */
function withinBudgets<Result>(
  context: Context,
  attempt: Attempt,
  run: () => Promise<Result>,
): Promise<Result> {
  for (const { limiter, key, limit } of attempt.budgets) {
    const refusal = limiter.refusal(key, limit);
    if (refusal !== undefined) throw refuse(context, attempt.credential, refusal.resetMs);
  }
  return counted(context, attempt, run);
}

/** Runs an attempt. Counts a failure in each budget. */
async function counted<Result>(
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
    // Beyond the budget, every failure gets the same response. So it does not reveal which of the failures it was, for
    // example that the token is right but its account is suspended.
    if (refused !== undefined) throw refuse(context, credential, refused.resetMs);
    context.metrics.guessed(credential, 'failed');
    throw error;
  }
}
