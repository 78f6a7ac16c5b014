import { ApiError } from '../../src/client/index.ts';
import { type AnyCall, type Journal, nowMs, type Outcome } from './journal.ts';
import type { RecordedFetch } from './recorded-fetch.ts';

/** The fields that a call starts with. */
export type Pending = AnyCall extends infer C ? (C extends AnyCall ? Omit<C, CallFields> : never) : never;
type CallFields = 'user' | 'sentMs' | 'endMs' | 'outcome' | 'code' | 'attempts';

/**
 * Codes that mean that nothing happened. After an earlier attempt whose response was lost, they say nothing about that
 * attempt.
 */
const REFUSALS = new Set([
  'VALIDATION_ERROR',
  'NOT_FOUND',
  'CONFLICT',
  'LIMIT_EXCEEDED',
  'PERMISSION_DENIED',
  'RATE_LIMITED',
]);

/** Journals a call that is about to be sent. Until `settleCall`, it may or may not have happened. */
export function beginCall<C extends Pending>(journal: Journal, user: number, asked: C): C & AnyCall {
  const call = Object.assign(asked, {
    user,
    sentMs: nowMs(),
    endMs: Number.POSITIVE_INFINITY,
    outcome: 'unknown' as Outcome,
    code: '',
    attempts: 0,
  });
  journal.calls.push(call as unknown as AnyCall);
  return call as unknown as C & AnyCall;
}

/**
 * Sends a call and journals its result. Nothing else may use its `fetch` meanwhile, because it counts the requests as
 * attempts.
 */
export async function settleCall(
  recorded: RecordedFetch,
  call: AnyCall,
  send: () => Promise<unknown>,
): Promise<void> {
  const before = recorded.count;
  try {
    await send();
    call.outcome = 'done';
  } catch (error) {
    call.code = error instanceof ApiError ? error.code : 'CONNECTION_LOST';
    const wasSentOnce = recorded.count - before === 1;
    if (REFUSALS.has(call.code) && wasSentOnce) call.outcome = 'refused';
    // Only for imports does the contract promise that nothing happened and nothing will.
    if (call.kind === 'import' && call.code === 'UNAVAILABLE' && wasSentOnce) call.outcome = 'refused';
  }
  call.attempts = recorded.count - before;
  call.endMs = nowMs();
}
