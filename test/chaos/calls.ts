import { ApiError } from '../../src/client/index.ts';
import { type AnyCall, type Journal, nowMs, type Outcome } from './journal.ts';
import type { RecordedFetch } from './recorded-fetch.ts';

/** A call without the fields that `beginCall` fills in. */
export type Pending = AnyCall extends infer C ? (C extends AnyCall ? Omit<C, CallFields> : never) : never;
type CallFields = 'user' | 'sentMs' | 'endMs' | 'outcome' | 'code' | 'attempts';

/**
 * Error codes which mean that the request changed nothing. They say nothing about an earlier attempt whose response was
 * lost.
 */
const REFUSALS = new Set([
  'VALIDATION_ERROR',
  'NOT_FOUND',
  'CONFLICT',
  'LIMIT_EXCEEDED',
  'PERMISSION_DENIED',
  'RATE_LIMITED',
]);

/** Journals a call that is about to be sent. Its outcome is unknown until `settleCall` records it. */
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
 * Sends a call and journals its result. Only calls of the same batch may use the recorded `fetch` at the same time,
 * because every request through it counts as an attempt of this call.
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
    // If an import gets UNAVAILABLE, it had no effect and will have none. The contract promises this only for imports.
    if (call.kind === 'import' && call.code === 'UNAVAILABLE' && wasSentOnce) call.outcome = 'refused';
  }
  call.attempts = recorded.count - before;
  call.endMs = nowMs();
}
