import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import type { Sql, Statement } from '../../src/store/driver/database.ts';
import type { SchemaFiles } from '../../src/store/schema/schema-files.ts';

/** What the previous release requires of its database. `record.ts` writes this file, and tests read it. */

export const RELEASE_FILE = join(import.meta.dirname, '../samples/release-before.json');

/** A statement as the driver sent it, and the number of rows that it returned. */
export interface RecordedCall {
  query: string;
  /**
   * Bytes are recorded as `{ hex }`. An id that an earlier call returned is recorded as `{ from }`, which names that
   * call and the place of the id in the call's rows.
   */
  values: unknown[];
  rows: number;
}

export interface ReleaseBefore {
  release: string;
  schema: SchemaFiles;
  calls: RecordedCall[];
}

/** Returns the recording of the previous release, or undefined before the first release. */
export const readRelease = (): ReleaseBefore | undefined =>
  existsSync(RELEASE_FILE) ? JSON.parse(readFileSync(RELEASE_FILE, 'utf8')) : undefined;

/** Builds a statement, as the functions of the store do. */
export type Run = (sql: Sql) => Statement<readonly unknown[]>;

/** Records the statements that `send` receives. */
export async function recordCalls(
  url: string,
  sendAll: (send: (run: Run) => Promise<readonly unknown[]>) => Promise<void>,
): Promise<RecordedCall[]> {
  const calls: RecordedCall[] = [];
  const seen = new SeenRows();
  let query = '';
  let values: unknown[] = [];
  const sql = postgres(url, {
    max: 1,
    onnotice: () => {},
    transform: { undefined: null },
    types: { int8: { to: 20, from: [20], parse: Number, serialize: String } },
    debug: (_, text, parameters) => {
      query = text;
      values = parameters;
    },
  });
  try {
    await sendAll(async (run) => {
      const rows = await run(sql as never);
      calls.push({ query, values: values.map((value) => seen.encode(value)), rows: rows.length });
      seen.add(rows);
      return rows;
    });
  } finally {
    await sql.end();
  }
  return calls;
}

/** Replays the recorded statements. Each must succeed and return as many rows as when it was recorded. */
export async function replay(
  url: string,
  recorded: readonly RecordedCall[],
  seen = new SeenRows(),
): Promise<SeenRows> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    for (const { query, values, rows } of recorded) {
      const given = values.map((value) => seen.decode(value));
      const found = await sql.unsafe(query, given as never[], { prepare: true });
      assert.equal(found.length, rows, query);
      for (const row of found)
        assert.doesNotMatch(String(row.outcome), /token|missing|limit|over|busy|full/, query);
      seen.add(found);
    }
    return seen;
  } finally {
    await sql.end();
  }
}

type Way = (string | number)[];

/** Returns whether a value is an id. Ids contain the time, so they are larger than all other numbers here. */
const isId = (value: unknown): value is number => typeof value === 'number' && value > 1e9;

/** Parses JSON texts, and token ids in the form that the operator's commands use. Returns other values unchanged. */
function parseText(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (/^\d+-\d+$/.test(value)) return value.split('-').map(Number);
  if (!/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** The rows of earlier calls, which contain the ids that later calls use. */
export class SeenRows {
  readonly #rows: (readonly unknown[])[] = [];
  readonly #wayOfId = new Map<number, Way>();

  add(rows: readonly unknown[]): void {
    this.#rows.push(rows);
    this.#visit(rows, [this.#rows.length - 1]);
  }

  #visit(value: unknown, way: Way): void {
    const found = parseText(value);
    if (isId(found) && !this.#wayOfId.has(found)) this.#wayOfId.set(found, way);
    if (typeof found !== 'object' || found === null) return;
    for (const [step, inner] of Object.entries(found)) this.#visit(inner, [...way, step]);
  }

  encode(value: unknown): unknown {
    if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') };
    if (!isId(value) || value === Number.MAX_SAFE_INTEGER) return value;
    const from = this.#wayOfId.get(value);
    if (from === undefined) throw new Error(`${value} came from no call`);
    return { from };
  }

  decode(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if ('hex' in value) return Buffer.from(value.hex as string, 'hex');
    if (!('from' in value)) return value;
    let found: unknown = this.#rows;
    for (const step of value.from as Way)
      found = (parseText(found) as Record<string | number, unknown>)[step];
    return Number(found);
  }
}
