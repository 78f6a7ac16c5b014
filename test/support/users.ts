import { foldText } from '../../src/domain/text.ts';
import { createSecret, formatToken, type Scope } from '../../src/domain/tokens.ts';
import { createApiToken, createUser } from '../../src/store/admin.ts';
import type { Database } from '../../src/store/driver/database.ts';

/** Options of a user. By default, the user has a free account, a new address, and a token with the scope `write`. */
export interface UserOptions {
  scope?: Scope;
  premium?: boolean;
  email?: string;
}

/** A user with a token. */
export interface Principal {
  id: number;
  email: string;
  token: string;
}

let users = 0;

/** Returns an e-mail address that no other user of this run has. */
export const newEmail = (): string => `user-${++users}-${process.pid}@example.org`;

/** Creates a user with an API token. */
export async function createPrincipal(
  database: Database,
  { scope = 'write', premium = false, email = newEmail() }: UserOptions = {},
): Promise<Principal> {
  const user = await createUser(database, email, foldText(email), premium);
  return { id: user!.id, email, token: await issueToken(database, user!.id, scope) };
}

/** Issues an API token to a user. */
export async function issueToken(database: Database, userId: number, scope: Scope): Promise<string> {
  const secret = createSecret();
  await createApiToken(database, userId, secret, { scope, name: '', nameKey: '', days: null });
  return formatToken('api', userId, secret.secret);
}
