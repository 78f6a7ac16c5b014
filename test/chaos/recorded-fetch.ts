import { type Attempt, type Journal, nowMs } from './journal.ts';

/** A `fetch` that journals each request. All its requests have the same token. `last` is the latest request. */
export interface RecordedFetch {
  fetch: typeof fetch;
  /** The number of requests so far. */
  readonly count: number;
  readonly last: Attempt | undefined;
}

/** Returns a `fetch` that records the requests and returns the responses unchanged. */
export function recordFetch(journal: Journal, token: string, send: typeof fetch = fetch): RecordedFetch {
  let count = 0;
  let last: Attempt | undefined;
  const record: typeof fetch = async (input, init) => {
    const attempt: Attempt = {
      token,
      path: new URL(String(input)).pathname.slice('/api/v1'.length),
      sentMs: nowMs(),
      endMs: Number.POSITIVE_INFINITY,
      status: 0,
      servedBy: '',
      isCounted: false,
      isAborted: false,
    };
    journal.attempts.push(attempt);
    last = attempt;
    count += 1;
    try {
      const response = await send(input, init);
      attempt.status = response.status;
      attempt.servedBy = response.headers.get('x-served-by') ?? '';
      attempt.isCounted = response.headers.has('x-ratelimit-limit');
      return response;
    } finally {
      attempt.endMs = nowMs();
      attempt.isAborted = attempt.status === 0 && init?.signal?.aborted === true;
    }
  };
  return {
    fetch: record,
    get count() {
      return count;
    },
    get last() {
      return last;
    },
  };
}
