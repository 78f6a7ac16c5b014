import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import type { Quota, RateLimiter } from '../coordination/port.ts';
import { ApiError } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/resources.ts';
import type { PresentedToken } from '../domain/tokens.ts';
import { NoPermit } from '../flow/semaphore.ts';
import type { Credential } from '../observability/metrics.ts';
import { addressKey, clientAddress, networkKey, refuse } from './quota-headers.ts';

/**
 * Limits guesses of codes and tokens (docs/contract.md, section 8, decision 42). Only failures count, and they count
 * across all replicas.
 */

/** The number of failures that a limiter admits for one key in each window. */
interface Budget {
  limiter: RateLimiter;
  key: string;
  limit: number;
}

/** Counts a failure or a try. Returns the refusal if the budget is used up. */
async function consume({ limiter, key, limit }: Budget): Promise<Quota | undefined> {
  const quota = await limiter.consume(key, limit);
  return quota.admitted ? undefined : quota;
}

/** Returns the refusal if the budget is used up, over all replicas. Counts nothing. */
async function check({ limiter, key, limit }: Budget): Promise<Quota | undefined> {
  await limiter.peek(key, limit);
  return limiter.refusal(key, limit);
}

/** The budgets of one exchange of a code. A failure counts against `own` and `shared`. */
interface CodeBudgets {
  /** The client's own budgets. If one of them is used up, the exchange is refused. */
  own: readonly Budget[];
  /** The budget that the client shares with others. If it is used up, the exchange must be a try. */
  shared: Budget;
  /** Counts a try, before its code is looked up. Returns the refusal if the client has no try left. */
  takeTry: () => Promise<Quota | undefined>;
}

/** Without an e-mail address, all failures and tries together may be this many times the shared budget. */
const WITH_TRIES = 10;

/** Wrong codes with an e-mail address, per hour. */
const FAILURES_PER_HOUR = { ofPair: 10, ofAddress: 10, ofEmail: 300 };

/** Failed lookups of tokens, per minute and client address. */
const TOKEN_FAILURES_PER_MINUTE = 600;

/**
 * Runs an exchange of a code, which must throw `NOT_FOUND` if the code is wrong. Throws `RATE_LIMITED` if too many wrong
 * codes were sent. `emailKey` is the normalized e-mail address of the request, if it names one. Codes of all kinds and
 * of all routes share the same budgets.
 */
export async function limitWrongCodes<Result>(
  context: Pick<Context, 'config' | 'coordination' | 'metrics'>,
  request: FastifyRequest,
  emailKey: string | undefined,
  exchange: () => Promise<Result>,
): Promise<Result> {
  const budgets =
    emailKey === undefined
      ? budgetsWithoutEmail(context, request)
      : budgetsOfEmail(context, request, emailKey);
  const { own, shared, takeTry } = budgets;
  const [ofShared, ...ofOwn] = await Promise.all([shared, ...own].map(check));
  const isTry = ofShared !== undefined;
  const refusal = ofOwn.find((each) => each !== undefined) ?? (isTry ? await takeTry() : undefined);
  if (refusal !== undefined) throw countRefusal(context, request, 'invite', refusal);
  const counted = isTry ? own : [shared, ...own];
  return countFailure(context, request, { credential: 'invite', codes: ['NOT_FOUND'], counted }, exchange);
}

/**
 * Returns the budgets of a request that names no e-mail address. All clients share one budget. When strangers have used
 * it up, each network can still try one code a minute.
 */
function budgetsWithoutEmail(
  context: Pick<Context, 'config' | 'coordination'>,
  request: FastifyRequest,
): CodeBudgets {
  const { codeFailures: limiter } = context.coordination.limiters;
  const limit = context.config.inviteFailuresPerMinute;
  const ofNetwork = { limiter, key: `try:${networkKey(clientAddress(request))}`, limit: 1 };
  const allTries = { limiter, key: 'tries', limit: limit * (WITH_TRIES - 1) };
  return {
    own: [],
    shared: { limiter, key: 'all', limit },
    takeTry: async () => (await consume(ofNetwork)) ?? consume(allTries),
  };
}

/**
 * Returns the budgets of a request that names an e-mail address. Each network has its own budget for the address, and
 * each client has one for all e-mail addresses. When very many networks have failed for an e-mail address, each network
 * that has not failed can still try one code an hour.
 */
function budgetsOfEmail(
  context: Pick<Context, 'coordination'>,
  request: FastifyRequest,
  emailKey: string,
): CodeBudgets {
  const { namedCodeFailures: limiter } = context.coordination.limiters;
  const { ofPair, ofAddress, ofEmail } = FAILURES_PER_HOUR;
  const client = clientAddress(request);
  const email = hash('sha256', emailKey, 'base64url');
  const pair = `${email}:${networkKey(client)}`;
  return {
    own: [
      { limiter, key: `pair:${pair}`, limit: ofPair },
      { limiter, key: `address:${addressKey(client)}`, limit: ofAddress },
    ],
    shared: { limiter, key: `email:${email}`, limit: ofEmail },
    takeTry: async () =>
      (await check({ limiter, key: `pair:${pair}`, limit: 1 })) ??
      consume({ limiter, key: `try:${pair}`, limit: 1 }),
  };
}

/**
 * Looks up a token that this replica does not remember. Once the budget of the client's address is used up, the lookups
 * of this address run one at a time. From then on, a wrong token gives `RATE_LIMITED`, and so does a lookup that gets
 * no permit. These limits do not apply to a token that was valid when this replica last looked it up. A lookup makes no
 * call to Redis unless it fails.
 */
export function limitTokenFailures<Result>(
  context: Pick<Context, 'coordination' | 'lookUpPermits' | 'metrics' | 'principals'>,
  request: FastifyRequest,
  token: PresentedToken,
  lookUp: () => Promise<Result>,
): Promise<Result> {
  if (context.principals.hasSeen(token)) return lookUp();
  const { tokenFailures: limiter } = context.coordination.limiters;
  const key = addressKey(clientAddress(request));
  const counted = [{ limiter, key, limit: TOKEN_FAILURES_PER_MINUTE }];
  const codes = ['INVALID_TOKEN', 'ACCOUNT_SUSPENDED'] as const;
  const lookUpCounted = () =>
    countFailure(context, request, { credential: 'bearer', codes, counted }, lookUp);
  const refusal = limiter.refusal(key, TOKEN_FAILURES_PER_MINUTE);
  if (refusal === undefined) return lookUpCounted();
  return context.lookUpPermits.run(key, lookUpCounted).catch((error: unknown) => {
    throw error instanceof NoPermit ? countRefusal(context, request, 'bearer', refusal) : error;
  });
}

/** Which errors of an attempt are failures, and the budgets against which they count. */
interface Failures {
  credential: Credential;
  codes: readonly ErrorCode[];
  counted: readonly Budget[];
}

/**
 * Runs an attempt. If it fails, counts the failure in each budget. If a budget does not admit the failure, throws
 * `RATE_LIMITED` instead of the error.
 */
async function countFailure<Result>(
  context: Pick<Context, 'metrics'>,
  request: FastifyRequest,
  { credential, codes, counted }: Failures,
  attempt: () => Promise<Result>,
): Promise<Result> {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof ApiError && codes.includes(error.code))) throw error;
    const refusal = (await Promise.all(counted.map(consume))).find((each) => each !== undefined);
    // Once a budget is used up, every failure gets the same response. So the response does not reveal, for example,
    // that the token is right but its account is suspended.
    if (refusal !== undefined) throw countRefusal(context, request, credential, refusal);
    context.metrics.guessed(credential, 'failed');
    throw error;
  }
}

/** Counts a refused attempt, and returns its error. */
function countRefusal(
  { metrics }: Pick<Context, 'metrics'>,
  request: FastifyRequest,
  credential: Credential,
  refusal: Quota,
): ApiError {
  metrics.guessed(credential, 'refused');
  return refuse(request, refusal, `too many wrong ${credential === 'invite' ? 'codes' : 'tokens'} were sent`);
}
