import type { Database } from './driver/database.ts';
import { sqlStateOf } from './driver/errors.ts';
import { onlyRow } from './outcomes.ts';

/** Reads and writes the table `audit`, which has one row for each command that an operator ran. */

/** A command as the table `audit` records it, without secrets. */
export interface AuditedCommand {
  /** Null if the operator gave no name. */
  operator: string | null;
  /** The name of the command, for example `user suspend`. */
  action: string;
  /** The options of the command, for example `--email ann@example.org`. */
  object: string;
}

interface AuditRecord extends AuditedCommand {
  id: number;
  at: string;
  /** Null while the command is running. Also null if its process ended before the outcome was recorded. */
  outcome: 'done' | 'failed' | null;
}

const UNDEFINED_FUNCTION = '42883';

/**
 * Records that a command begins. Returns the id of the new row in `audit`. Returns undefined if the database has an old
 * schema without the table `audit`.
 */
export async function beginAudit(
  db: Database,
  { operator, action, object }: AuditedCommand,
): Promise<number | undefined> {
  try {
    const rows = await db.write(
      (sql) => sql<{ id: number }[]>`select id from begin_audit(${operator}, ${action}, ${object})`,
    );
    return onlyRow(rows).id;
  } catch (error) {
    if (sqlStateOf(error) === UNDEFINED_FUNCTION) return undefined;
    throw error;
  }
}

/** Records how a command ended. */
export async function endAudit(db: Database, id: number, outcome: 'done' | 'failed'): Promise<void> {
  await db.write((sql) => sql`update audit set outcome = ${outcome} where id = ${id}`);
}

/** Returns at most `limit` records with ids below `before`, newest first. */
export async function listAudit(db: Database, before: number, limit: number): Promise<AuditRecord[]> {
  const rows = await db.read(
    (sql) => sql<AuditRecord[]>`
      select id, render_time(at) as at, operator, action, object, outcome
      from audit
      where id < ${before}
      order by id desc
      limit ${limit}`,
  );
  return [...rows];
}
