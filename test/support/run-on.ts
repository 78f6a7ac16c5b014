import postgres from 'postgres';

/** A migrated, empty database that nobody else uses. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
  /** Ends the connections to the database and drops it. At the end of the run, remaining databases are dropped. */
  drop(): Promise<void>;
}

/** Returns the url of another database of the same server. */
export function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/** Runs SQL without parameters on a new connection, and returns the rows of the last statement. */
export async function runOn<Row extends object>(url: string, statements: string): Promise<Row[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return [...(await sql.unsafe<Row[]>(statements))];
  } finally {
    await sql.end({ timeout: 0 });
  }
}

/** Opens a transaction that keeps a snapshot, as a dump does. Disposing of the result ends the transaction. */
export async function openSnapshot(url: string): Promise<AsyncDisposable> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe('begin isolation level repeatable read; select').simple();
  return { [Symbol.asyncDispose]: () => sql.end({ timeout: 0 }) };
}
