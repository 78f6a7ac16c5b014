import type { Attempt, Journal, Life } from '../journal.ts';
import type { Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * For each kind of request, the longest allowed time until the head of the response. It is the time that the service
 * promises, plus the duration of the longest fault and a margin for a busy machine.
 */
const DEADLINES_MS = { poll: 50_000, import: 170_000, other: 32_000 };

/** Checks that there is no 500, no response after its deadline, and nothing else that a client should never see. */
export function checkAnswered({ evidence }: Story): Result {
  const { attempts, surprises, calls } = evidence.journal;
  const findings = [...surprises];
  const byStatus: Record<string, number> = {};
  for (const attempt of attempts) {
    const { path, status } = attempt;
    const name = status !== 0 ? String(status) : attempt.isAborted ? 'given up by the client' : 'lost';
    byStatus[name] = (byStatus[name] ?? 0) + 1;
    if (status === 500) findings.push(`${path} was answered 500 by ${attempt.servedBy}`);
    const tookMs = attempt.endMs - attempt.sentMs;
    if (tookMs > deadlineMs(attempt)) findings.push(`${path} hung for ${Math.round(tookMs)} ms`);
  }
  for (const { kind, code, sentMs } of calls) {
    if (code === 'INVALID_TOKEN' || code === 'PERMISSION_DENIED' || code === 'TIMEOUT')
      findings.push(`${kind} at ${Math.round(sentMs)} ended with ${code}`);
  }
  const batches = attempts.filter(({ path, status }) => path === '/bookmarks/batch' && status === 200).length;
  return { point: 'answered', counts: { ...byStatus, batches }, findings };
}

function deadlineMs({ path }: Attempt): number {
  if (path === '/bookmarks/sync' || path === '/bookmarks/changes') return DEADLINES_MS.poll;
  return path === '/import' ? DEADLINES_MS.import : DEADLINES_MS.other;
}

/** The level of errors in the log. The service logs faults of other systems as warnings. */
const ERROR_LEVEL = 50;

/**
 * Checks that no process ended by itself, that processes exited with code 0 after SIGTERM, and that no process logged
 * an unexpected error.
 */
export function checkLived({ evidence }: Story): Result {
  const { lives, faults } = evidence.journal;
  const findings = lives.flatMap((life) => [...findBadEnd(evidence.journal, life), ...findErrors(life)]);
  const warnings = lives.reduce((sum, { problems }) => sum + problems.length, 0);
  const killed = lives.filter(({ endedBy }) => endedBy === 'SIGKILL').length;
  const inOrder = lives.filter(({ endedBy, end }) => endedBy === 'SIGTERM' && end === 0).length;
  const counts = {
    processes: lives.length,
    killed,
    'ended in order': inOrder,
    faults: faults.length,
    warnings,
  };
  return { point: 'lived', counts, findings };
}

/** A process logs this if it finds no database when it starts. */
const NO_DATABASE = 'DATABASE_URL: database unavailable';

function findBadEnd({ faults }: Journal, life: Life): string[] {
  const { name, end, endedBy, answeredMs, startMs, endMs, problems } = life;
  if (end === undefined) return [];
  if (endedBy === 'SIGKILL' && end === 'SIGKILL') return [];
  if (endedBy === 'SIGTERM' && end === 0) return [];
  // A process exits if it finds no database at its start. Its supervisor then starts it again. Such an exit is no
  // finding if a fault of Postgres overlapped the process's life, or ended at most 5 s before the process started.
  const wasCut = faults.some(
    (fault) => fault.target.includes('postgres') && fault.startMs < endMs && fault.endMs + 5_000 > startMs,
  );
  const foundNone = problems.some(({ text }) => text.includes(NO_DATABASE));
  if (endedBy === undefined && answeredMs === undefined && end === 1 && foundNone && wasCut) return [];
  const words = problems.at(-1)?.text.slice(0, 600) ?? '';
  return [`${name} ended with ${end}${endedBy === undefined ? ' by itself' : ` after ${endedBy}`}: ${words}`];
}

/**
 * Errors that are expected. If the service does not learn from the database whether an import was done, it closes the
 * client's connection without a response. If a worker could not run an import, the import runs again.
 */
const EXPECTED = ['import ended without a response', 'import failed; it stays staged and is tried again'];

function findErrors({ name, problems, answeredMs }: Life): string[] {
  return problems
    .filter(({ level, text }) => level >= ERROR_LEVEL && !EXPECTED.some((each) => text.includes(`"${each}"`)))
    .filter(({ level }) => !(level === 60 && answeredMs === undefined))
    .map(({ text }) => `${name}: ${text.slice(0, 600)}`);
}

/** Checks that the processes released all resources after the work. */
export function checkRested({ evidence }: Story): Result {
  const { leftovers, looked } = evidence.rest;
  const counts = { ...looked, 'polls held before': evidence.journal.heldPolls };
  return { point: 'rested', counts, findings: leftovers };
}
