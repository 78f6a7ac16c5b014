import { createSecret, formatToken } from '../../src/domain/tokens.ts';
import { createApiToken, createUser, deleteUser } from '../../src/store/admin.ts';
import type { Database } from '../../src/store/driver/database.ts';

/** Users that exist for one run. Disposing deletes the users with everything that they added. */
export interface LoadUsers extends AsyncDisposable {
  tokens: string[];
}

/** Creates users with one token each, in the service's own database. */
export async function createUsers(database: Database, count: number): Promise<LoadUsers> {
  const addresses: string[] = [];
  const remove = async () => {
    for (const address of addresses) await deleteUser(database, address);
  };
  try {
    const tokens: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const address = `load-${process.pid}-${Date.now()}-${n}@load.invalid`;
      addresses.push(address);
      const { id } = (await createUser(database, address, address, true))!;
      const secret = createSecret();
      const given = { scope: 'write', name: 'load', nameKey: 'load', days: 1 } as const;
      await createApiToken(database, id, secret, given);
      tokens.push(formatToken('api', id, secret.secret));
    }
    return { tokens, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
