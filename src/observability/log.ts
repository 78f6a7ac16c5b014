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
 * The fields of an error that may be logged. An allow-list: errors of Postgres hold row values, errors of Redis hold
 * the arguments of the command.
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
 * Lines are written together, since a write costs more than making a line: after 4 KiB, 100 ms, or at the end of the
 * process.
 */
const LINES = { sync: false, minLength: 4_096, periodicFlush: 100 };

/** The time in ISO 8601; the text is made once a millisecond. */
function openIsoTime(): () => string {
  let madeAt = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== madeAt) {
      madeAt = now;
      text = `,"time":"${new Date(now).toISOString()}"`;
    }
    return text;
  };
}

/**
 * The process's log on standard output: JSON lines, at most 100 ms late; for people at a terminal, plain lines. With
 * `isStarting` a terminal shows what happens in one changing line, until the line `LISTENING`.
 */
export const openLog = (level: string, { isStarting = false } = {}): Logger =>
  pino(
    { level, base: null, timestamp: openIsoTime(), serializers: { err: describeError } },
    process.stdout.isTTY ? new TerminalLog(process.stdout, isStarting) : pino.destination(LINES),
  );
