import type { Database } from './database.ts';

/** A probe that waits longer is a failed one to Kubernetes. */
const PROBE_DEADLINE_MS = 2_000;

/** Whether the database answers now. */
export async function ping(db: Database): Promise<boolean> {
  try {
    await db.read((sql) => sql`select 1`, PROBE_DEADLINE_MS);
    return true;
  } catch {
    return false;
  }
}
