import type { Attempt, Fault, Journal } from '../journal.ts';
import { append, type Story } from './births.ts';
import type { Result } from './findings.ts';

/** Checks that no user has more bookmarks than the limit, neither in a response nor in the final database. */
export function checkCapped({ evidence }: Story): Result {
  const { journal, rest, limits } = evidence;
  const findings = [...rest.recountFaults];
  for (const { source, user, ids } of journal.looks) {
    if (ids.length > limits.bookmarks) findings.push(`${source} of ${user} holds ${ids.length}`);
  }
  const held = new Map<number, number>();
  for (const { user } of rest.rows) held.set(user, (held.get(user) ?? 0) + 1);
  for (const [user, count] of held) if (count > limits.bookmarks) findings.push(`${user} has ${count}`);
  const atCap = journal.looks.filter(({ ids }) => ids.length === limits.bookmarks);
  const hits = journal.calls.filter(({ code }) => code === 'LIMIT_EXCEEDED').length;
  return {
    point: 'capped',
    counts: {
      cap: limits.bookmarks,
      refused: hits,
      looks: journal.looks.length,
      'looks at the cap': atCap.length,
    },
    findings,
  };
}

/**
 * The longest delay between an event and the log line that describes it. Each disturbance of the limiter is extended by
 * this delay at both ends.
 */
const MARGIN_MS = 1_500;

/**
 * Checks the rate limit in every window. A request is admitted at some time between its sending and the head of its
 * response. So a request certainly counts for a window only if it was sent and answered inside the window. Without a
 * disturbance of the limiter, a window admits at most the limit. With a disturbance, each process admits at most the
 * limit on its own, and Redis admits at most the limit before and after each of its faults.
 */
export function checkLimited({ evidence }: Story): Result {
  const { journal, limits } = evidence;
  const ofRedis = listFaultsOfRedis(journal);
  const disturbed = listDisturbances(journal, ofRedis);
  const findings: string[] = [];
  const counts = { windows: 0, undisturbed: 0, 'undisturbed and used up': 0, admitted: 0, refused: 0 };
  for (const attempts of countedByToken(journal).values()) {
    for (const [n, first] of attempts.entries()) {
      const endMs = first.sentMs + limits.windowMs;
      const within = admittedWithin(attempts, n, endMs);
      // Only disturbances before this time can have changed how many of these requests were admitted.
      const lastMs = Math.max(...within.map((attempt) => attempt.endMs));
      counts.windows += 1;
      const isDisturbed = disturbed.some((each) => overlaps(each, first.sentMs, lastMs));
      if (!isDisturbed) counts.undisturbed += 1;
      if (!isDisturbed && within.length >= limits.requests) counts['undisturbed and used up'] += 1;
      if (!isDisturbed && within.length > limits.requests)
        findings.push(
          `${within.length} requests of one token were admitted from ${Math.round(first.sentMs)} on`,
        );
      const redisWindows = isAlone(journal)
        ? 0
        : 1 + ofRedis.filter((each) => overlaps(each, first.sentMs, endMs)).length;
      findings.push(...findExcess(journal, within, first.sentMs, endMs, limits.requests, redisWindows));
    }
    counts.admitted += attempts.length;
  }
  counts.refused = journal.attempts.filter(({ status }) => status === 429).length;
  return { point: 'limited', counts, findings };
}

function countedByToken({ attempts }: Journal): Map<string, Attempt[]> {
  const counted = new Map<string, Attempt[]>();
  for (const attempt of attempts) {
    if (attempt.isCounted && attempt.status !== 429) append(counted, attempt.token, attempt);
  }
  return counted;
}

/**
 * Returns the attempts that were sent and answered within a window. `attempts` must be sorted by the time of sending.
 */
function admittedWithin(attempts: readonly Attempt[], from: number, endMs: number): Attempt[] {
  const within: Attempt[] = [];
  for (let n = from; n < attempts.length && attempts[n]!.sentMs < endMs; n += 1) {
    if (attempts[n]!.endMs < endMs) within.push(attempts[n]!);
  }
  return within;
}

interface Span {
  startMs: number;
  endMs: number;
}

const overlaps = (span: Span, startMs: number, endMs: number): boolean =>
  span.startMs < endMs && span.endMs > startMs;

/** Whether no process ever used Redis, so that each process has its own limiter. */
const isAlone = ({ lives }: Journal): boolean =>
  lives.every(({ startMs, fallbacks }) => fallbacks[0]?.startMs === startMs);

/** Lists the times in which Redis may have lost what it counted. */
const listFaultsOfRedis = ({ faults }: Journal): Span[] =>
  faults.filter(({ target }: Fault) => target.includes('redis')).map(widen);

function listDisturbances(journal: Journal, ofRedis: readonly Span[]): Span[] {
  const { lives } = journal;
  // Without Redis, counts are lost only when a process starts or ends.
  if (isAlone(journal)) return lives.flatMap(({ startMs, endMs }) => [startMs, endMs].map(around));
  const fallbacks = lives.flatMap((life) =>
    life.fallbacks.map(({ startMs, endMs }) => widen({ startMs, endMs: Math.min(endMs, life.endMs) })),
  );
  return [...ofRedis, ...fallbacks];
}

const widen = ({ startMs, endMs }: Span): Span => ({
  startMs: startMs - MARGIN_MS,
  endMs: endMs + MARGIN_MS,
});

const around = (atMs: number): Span => widen({ startMs: atMs, endMs: atMs });

/**
 * Finds replicas that admitted more than they may in any case. `redisWindows` is how many times the limit Redis may have
 * admitted.
 */
function findExcess(
  { lives }: Journal,
  within: readonly Attempt[],
  startMs: number,
  endMs: number,
  limit: number,
  redisWindows: number,
): string[] {
  if (within.length <= limit) return [];
  const byReplica = Map.groupBy(within, ({ servedBy }) => servedBy);
  return [...byReplica].flatMap(([name, served]) => {
    const alive = lives.filter((life) => life.name === name && life.startMs < endMs && life.endMs > startMs);
    return served.length <= limit * (alive.length + redisWindows)
      ? []
      : [`${name} admitted ${served.length} requests of one token in ${alive.length} lives`];
  });
}
