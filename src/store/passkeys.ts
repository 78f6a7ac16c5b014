import { BOUNDS } from '../domain/fields.ts';
import { createSecret, formatToken } from '../domain/tokens.ts';
import type { Database } from './driver/database.ts';
import { type Outcome, requireSuccess, requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/**
 * Reads and writes passkeys. A browser that signs in with a passkey also sends the user's id. So every statement reads
 * the rows of one user only.
 */

/** The part of a passkey that verifies a signature. */
interface PasskeyKey {
  publicKey: Uint8Array<ArrayBuffer>;
  /** The number of signatures that the authenticator has made; always 0 if it does not count them. */
  counter: number;
}

interface NewPasskey extends PasskeyKey {
  credentialId: string;
  name: string | null;
}

/** A passkey as its owner sees it. */
interface ListedPasskey {
  id: string;
  name: string | null;
  created_at: string;
  last_used_at: string | null;
}

/** Returns all passkeys of a user, oldest first, and the user's address. Throws `INVALID_TOKEN`. */
export async function listPasskeys(
  db: Database,
  principal: PrincipalKey,
): Promise<{ email: string; passkeys: ListedPasskey[] }> {
  const { userId } = principal;
  const rows = await db.read(
    (sql) => sql<{ valid: boolean; email: string; passkeys: ListedPasskey[] }[]>`
      select ${tokenIsValid(sql, principal)} as valid,
        (select email from users where id = ${userId}) as email,
        coalesce((
          select jsonb_agg(
            jsonb_build_object(
              'id', credential_id, 'name', name, 'created_at', render_time(created_at),
              'last_used_at', render_time(last_used_at)
            ) order by created_at, credential_id
          )
          from passkeys where user_id = ${userId}
        ), '[]') as passkeys`,
  );
  return requireValidToken(rows);
}

/**
 * Throws `INVALID_TOKEN` if the session is not valid. Throws `PERMISSION_DENIED` if the person authenticated too long
 * ago to change passkeys.
 */
export async function requireFreshSession(db: Database, { userId, hash }: PrincipalKey): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`select check_fresh_session(${userId}, ${hash}) as outcome`,
  );
  requireSuccess(rows);
}

/**
 * Stores a passkey. Throws the errors of `requireFreshSession`. Also throws `CONFLICT` if the user has the passkey
 * already, and `LIMIT_EXCEEDED` if the user would have too many passkeys.
 */
export async function addPasskey(
  db: Database,
  { userId, hash }: PrincipalKey,
  { credentialId, publicKey, counter, name }: NewPasskey,
): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome
      from add_passkey(
        p_user_id => ${userId}, p_token_hash => ${hash}, p_credential_id => ${credentialId},
        p_public_key => ${Buffer.from(publicKey)}, p_counter => ${counter}, p_name => ${name},
        p_limit => ${BOUNDS.passkeysPerUser}
      )`,
  );
  requireSuccess(rows);
}

/**
 * Removes a passkey. Throws the errors of `requireFreshSession`. Also throws `NOT_FOUND`, and `CONFLICT` if the user
 * could not sign in without this passkey.
 */
export async function removePasskey(
  db: Database,
  { userId, hash }: PrincipalKey,
  credentialId: string,
  issuer: string | undefined,
): Promise<void> {
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null }[]>`
      select outcome
      from remove_passkey(
        p_user_id => ${userId}, p_token_hash => ${hash}, p_credential_id => ${credentialId},
        p_issuer => ${issuer ?? ''}
      )`,
  );
  requireSuccess(rows);
}

/** Returns the key of a user's passkey; undefined if the user has no such passkey. */
export async function findPasskey(
  db: Database,
  userId: number,
  credentialId: string,
): Promise<PasskeyKey | undefined> {
  const [row] = await db.readShort(
    (sql) => sql<{ key: string; counter: number }[]>`
      select encode(public_key, 'hex') as key, counter
      from passkeys where user_id = ${userId} and credential_id = ${credentialId}`,
  );
  return row && { publicKey: Uint8Array.from(Buffer.from(row.key, 'hex')), counter: Number(row.counter) };
}

/**
 * Opens a session for the owner of a passkey, after the caller has verified the signature. Throws `NOT_FOUND` or
 * `ACCOUNT_SUSPENDED`.
 */
export async function signInByPasskey(
  db: Database,
  { userId, credentialId, counter }: { userId: number; credentialId: string; counter: number },
  days: number,
  client: string | null,
): Promise<{ token: string; user: { id: number; email: string } }> {
  const { secret, hash, lastFour } = createSecret();
  const rows = await db.write(
    (sql) => sql<{ outcome: Outcome | null; email: string }[]>`
      select outcome, email, name_session(${userId}, ${hash}, ${client})
      from sign_in_by_passkey(
        p_user_id => ${userId}, p_credential_id => ${credentialId}, p_counter => ${counter},
        p_token_hash => ${hash}, p_last_four => ${lastFour}, p_session_days => ${days}
      )`,
  );
  const { email } = requireSuccess(rows);
  return { token: formatToken('session', userId, secret), user: { id: userId, email } };
}
