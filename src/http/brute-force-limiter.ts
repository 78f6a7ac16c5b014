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
 * try only this replica's memory is asked, and only a failure is counted, over all replicas.
 */

/** Why a look-up beyond its network's budget was not made. */
class NoPermit extends Error {}

/** How long it waits for those before it, and how many wait: with a third of a millisecond each nobody waits long. */
const LOOK_UPS_BEYOND = { permits: 1, maxWaiting: 100, waitMs: 1_000 };

/** The permits of this process for such look-ups, by network. */
const beyondBudget = new Semaphore<string>({ ...LOOK_UPS_BEYOND, refusalError: () => new NoPermit() });

/** How many failures of a key its limiter admits in one window. */
interface Budget {
  limiter: RateLimiter;
  key: string;
  limit: number;
}

/** Something that can be guessed: whoever tries it is within all budgets, and fails by one of these codes. */
interface Attempt {
  credential: Credential;
  budgets: readonly Budget[];
  failureCodes: readonly ErrorCode[];
}

/** Wrong codes for one e-mail address, and of one network that names addresses, in any hour. */
const NAMED_FAILURES_PER_HOUR = 10;

/** Tokens of one network that are looked up in vain in any minute. */
const TOKEN_FAILURES_PER_MINUTE = 600;

/**
 * Runs an exchange of an invite code. One that names the e-mail address of its invite has budgets of its own, so that
 * nobody who guesses codes can close the door to everyone. Throws `RATE_LIMITED` beyond a budget.
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
 * Runs the look-up of a token that this replica does not remember. Beyond the network's budget look-ups go one after the
 * other, and a wrong token, or one too many that wait, is `RATE_LIMITED`. A token that was valid when this replica last asked
 * is no attempt, and waits for nobody.
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

/** Runs what is tried unless a budget is used up already. */
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

/** Runs what is tried, and counts its failure in each budget. */
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
    // Whether this attempt was right or wrong is told to nobody who has used up the budget.
    if (refused !== undefined) throw refuse(context, credential, refused.resetMs);
    context.metrics.guessed(credential, 'failed');
    throw error;
  }
}
