import type { Profile } from '../domain/resources.ts';
import type { Database } from './database.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type Owner, tokenIsValid } from './tokens.ts';

/** The caller's profile (spec 4.1). */
export async function readProfile(db: Database, owner: Owner): Promise<Profile> {
  const rows = await db.read(
    (sql) => sql<({ valid: boolean } & Profile)[]>`
      select ${tokenIsValid(sql, owner)} as valid, u.email, a.is_premium, render_time(u.created_at) as created_at
      from users u
      join accounts a on a.user_id = ${owner.userId}
      where u.id = ${owner.userId}`,
  );
  const { valid: _, ...profile } = requireValidToken(rows);
  return profile;
}

/** Uses up an invite, creates its user if there is none, and opens a session; throws `NOT_FOUND` (decision 22). */
export async function exchangeInvite(
  db: Database,
  code: string,
  tokenHash: Buffer,
  sessionDays: number,
): Promise<{ id: number; email: string }> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; id: number; email: string }[]>`
      select outcome, id, email from exchange_invite(${code}, ${tokenHash}, ${sessionDays})`,
  );
  const { id, email } = requireSuccess(rows);
  return { id, email };
}
