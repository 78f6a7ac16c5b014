import { type Logger, pino } from 'pino';
import { TerminalLog } from './terminal-log.ts';

export type { Logger };

interface ErrorFields {
  name?: unknown;
  message?: unknown;
  code?: unknown;
  stack?: unknown;
  cause?: unknown;
  constraint_name?: unknown;
  routine?: unknown;
}

/**
 * Returns the fields of an error that may be logged. Omits all other fields, because errors of Postgres contain row
 * values, and errors of Redis contain arguments of the command.
 */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, code, stack, cause, constraint_name, routine }: ErrorFields = error;
  const isForeign = name === 'PostgresError' || name === 'ReplyError';
  return {
    name,
    ...(isForeign ? {} : { message: error.message }),
    code,
    constraint_name,
    routine,
    stack: isForeign ? undefined : stack,
    cause: cause === undefined ? undefined : describeError(cause),
  };
}

/**
 * The log writes its lines in batches, because a write costs more time than formatting a line. It writes when it
 * holds 4 KiB, every 100 ms, and when the process ends.
 */
const LINES = { sync: false, minLength: 4_096, periodicFlush: 100 };

/**
 * Makes the function that returns pino's field `time` in ISO 8601. The function formats the time at most once a
 * millisecond, because a busy process logs many lines in one millisecond.
 */
function openIsoTime(): () => string {
  let formattedMs = 0;
  let field = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== formattedMs) {
      formattedMs = nowMs;
      field = `,"time":"${new Date(nowMs).toISOString()}"`;
    }
    return field;
  };
}

/**
 * Opens the process's log on standard output. The log has JSON lines, written at most 100 ms late. On a terminal, it
 * has lines for people instead. With `isStarting`, a terminal shows the progress of the start in one changing line,
 * until the message `LISTENING`.
 */
export const openLog = (level: string, { isStarting = false } = {}): Logger =>
  pino(
    { level, base: null, timestamp: openIsoTime(), serializers: { err: describeError } },
    process.stdout.isTTY ? new TerminalLog(process.stdout, isStarting) : pino.destination(LINES),
  );
