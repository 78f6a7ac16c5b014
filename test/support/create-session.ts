import { createSecret, formatToken } from '../../src/domain/tokens.ts';
import type { Database } from '../../src/store/driver/database.ts';
import { type Outcome, requireSuccess } from '../../src/store/outcomes.ts';

/** The properties of a session. */
interface NewSession {
  userId: number;
  /** The app that gets the token. Null for a browser. */
  appName: string | null;
  /** The time when the person proved their identity. Null means now. */
  authenticatedAt: Date | null;
  /** How many days the session is valid, like `SESSION_DAYS`. */
  days: number;
}

/**
 * Opens a session and returns its token. The database stores only the token's hash. Throws `INVALID_TOKEN` if the user
 * was deleted. If the user has more than 100 sessions, the least recently used ones are deleted.
 */
export async function createSession(
  db: Database,
  { userId, appName, authenticatedAt, days }: NewSession,
): Promise<string> {
  const { secret, hash, lastFour } = createSecret();
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome
      from open_session(${userId}, ${hash}, ${lastFour}, ${appName}, ${authenticatedAt}, ${days})`,
  );
  requireSuccess(rows);
  return formatToken('session', userId, secret);
}
