import { createSecret, formatToken } from '../../src/domain/tokens.ts';
import type { Database } from '../../src/store/database.ts';
import { type Outcome, requireSuccess } from '../../src/store/outcomes.ts';

/** What a session is opened for. */
interface NewSession {
  userId: number;
  /** The app that gets the token; null for a browser. */
  appName: string | null;
  /** When the person proved who they are; null: now. */
  authenticatedAt: Date | null;
  /** How long it is valid, `SESSION_DAYS`. */
  days: number;
}

/**
 * Opens a session and returns its token, which is stored nowhere. Throws `INVALID_TOKEN` where the user has been
 * deleted. Of more than 100 sessions of a user those that were used longest ago end.
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
