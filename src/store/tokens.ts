import {
  type Caller,
  type FoundCaller,
  MAX_SESSION_DAYS,
  type PresentedToken,
  type Scope,
} from '../domain/tokens.ts';
import type { Database, Sql } from './database.ts';
import { requireValidToken } from './outcomes.ts';

/** What a statement needs to know of whoever asks for it. */
export type Owner = Pick<Caller, 'userId' | 'hash'>;

/**
 * True while the caller's token is neither revoked nor expired: what shows or changes a user's things asks, so that a
 * revocation holds at once.
 */
export const tokenIsValid = (sql: Sql, { userId, hash }: Owner) => sql`exists (
  select from tokens where user_id = ${userId} and token_hash = ${hash} and expires_at > now()
)`;

/** The hashes, in hex, of those tokens of one user that are valid. */
export const validHashes = (sql: Sql, owners: readonly Owner[]) => sql`array(
  select encode(token_hash, 'hex')
  from tokens
  where user_id = ${owners[0]!.userId} and expires_at > now()
    and token_hash = any (
      array(select decode(given, 'hex') from unnest(${owners.map(({ hash }) => hash.toString('hex'))}::text[]) given)
    )
)`;

/** What a statement that checks many callers at once takes of them. */
export const usersOf = (checks: readonly { caller: Owner }[]): number[] =>
  checks.map(({ caller }) => caller.userId);
export const hashesOf = (checks: readonly { caller: Owner }[]): string[] =>
  checks.map(({ caller }) => caller.hash.toString('hex'));

/** Joins `tokens` with a row `checked (user_id, token_hash in hex, …)`: only where the token is valid. */
export const checkedTokenIsValid = (sql: Sql) => sql`
  tokens.user_id = checked.user_id and tokens.token_hash = decode(checked.token_hash, 'hex') and tokens.expires_at > now()`;

/** The places of a list but some. */
export function positionsBut(list: readonly unknown[], some: readonly number[]): number[] {
  const left = new Set(some);
  return [...list.keys()].filter((position) => !left.has(position));
}

/** With the operation's own 7 s a request waits 10 s for the database at most. */
const LOOK_UP_DEADLINE_MS = 3_000;

/**
 * Uses are shown exact to 15 minutes. A replica remembers a caller for 1 minute, without a look-up, and notes uses within
 * 13 s.
 */
const USE_IS_DUE_AFTER = '13 minutes';

/** The caller behind a token, `undefined` where it is unknown, revoked or expired. */
export async function findCaller(db: Database, token: PresentedToken): Promise<FoundCaller | undefined> {
  const [row] = await db.readShort(
    (sql) => sql<{ scope: Scope; isPremium: boolean; isUseDue: boolean; validForMs: number | null }[]>`
      select
        t.scope,
        a.is_premium as "isPremium",
        coalesce(t.last_used_at < now() - ${USE_IS_DUE_AFTER}::interval, true) as "isUseDue",
        case when isfinite(t.expires_at) then extract(epoch from t.expires_at - now())::float8 * 1000 end
          as "validForMs"
      from tokens t
      join accounts a on a.user_id = ${token.userId}
      where t.user_id = ${token.userId} and t.token_hash = ${token.hash} and t.kind = ${token.kind}
        and t.expires_at > now()`,
    LOOK_UP_DEADLINE_MS,
  );
  if (row === undefined) return undefined;
  const { scope, isPremium, isUseDue, validForMs } = row;
  return {
    ...token,
    hash: copyBytes(token.hash),
    scope,
    isPremium,
    isUseDue,
    expiresAtMs: performance.now() + (validForMs ?? Number.POSITIVE_INFINITY),
  };
}

/** In memory of its own: a caller is remembered, and what was parsed is a slice of 8 KiB that would stay with it. */
function copyBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Revokes the caller's token; throws `INVALID_TOKEN` where it was not valid any more. */
export async function revokeToken(db: Database, caller: Owner): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ valid: boolean }[]>`
      with revoked as (
        delete from tokens
        where user_id = ${caller.userId} and token_hash = ${caller.hash} and expires_at > now()
        returning 1
      )
      select exists (select from revoked) as valid`,
  );
  requireValidToken(rows);
}

/** A session prolongs itself when it is used in its last 30 days. */
const PROLONGED_IN_LAST_DAYS = 30;

/**
 * Notes that tokens of any users were used now, and prolongs sessions that are in their last 30 days to `sessionDays` from
 * now, a year from their creation at most. A row that is locked is left out: it is being revoked, or noted by another
 * replica.
 */
export async function noteUses(db: Database, owners: readonly Owner[], sessionDays: number): Promise<void> {
  const userIds = owners.map(({ userId }) => userId);
  const hashes = owners.map(({ hash }) => hash.toString('hex'));
  await db.write(
    (sql) => sql`
      select note_uses(
        ${userIds}::bigint[], ${hashes}::text[], ${PROLONGED_IN_LAST_DAYS}, ${sessionDays}, ${MAX_SESSION_DAYS}
      )`,
  );
}
