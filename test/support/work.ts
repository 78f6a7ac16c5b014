import type { Database } from '../../src/store/driver/database.ts';
import { openDatabase } from '../../src/store/driver/open.ts';

/** A node of a plan, as `auto_explain` writes it. The rows and loops were counted while the statement ran. */
interface PlanNode {
  'Node Type': string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}

/** A statement that ran, possibly inside a function. */
export interface RanStatement {
  text: string;
  /** The number of rows that all nodes of the statement's plan returned or discarded. */
  rows: number;
  /** The type of each node and its number of rows, for the message of a failed test. */
  plan: string;
  /**
   * The indexes from which the statement read all entries of a user. That happens if the statement has a condition on a
   * later column of an index, but none on the second column. `rows` does not count these entries.
   */
  indexesReadWhole: string[];
}

/** A database on one connection. It reports how many rows each statement handled. */
export interface WatchedDatabase {
  database: Database;
  /** Calls `run` and returns the statements that Postgres ran during the call. */
  watch(run: () => Promise<unknown>): Promise<RanStatement[]>;
  close(): Promise<void>;
}

const SETTINGS = `
  load 'auto_explain';
  set auto_explain.log_analyze = on;
  set auto_explain.log_timing = off;
  set auto_explain.log_nested_statements = on;
  set auto_explain.log_format = json;
  set auto_explain.log_level = notice`;

const rowsOf = (node: PlanNode): number =>
  ((node['Actual Rows'] ?? 0) +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Join Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0)) *
  (node['Actual Loops'] ?? 0);

const sumRows = (node: PlanNode): number =>
  (node.Plans ?? []).reduce((sum, inner) => sum + sumRows(inner), rowsOf(node));

const describePlan = (node: PlanNode): string =>
  `${node['Node Type']} ${rowsOf(node)}${node.Plans ? ` (${node.Plans.map(describePlan).join(', ')})` : ''}`;

/** The columns of each index, in order. */
type IndexColumns = ReadonlyMap<string, readonly string[]>;

async function readIndexColumns({ sql }: Database): Promise<IndexColumns> {
  const rows = await sql<{ name: string; columns: string[] }[]>`
    select indexrelid::regclass::text as name,
      array(select pg_get_indexdef(indexrelid, place, true) from generate_series(1, indnkeyatts) place) as columns
    from pg_index
    join pg_class on pg_class.oid = indexrelid
    where relnamespace = 'public'::regnamespace`;
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

/** Returns the indexes that this node of a plan and the nodes below it read whole. See `indexesReadWhole`. */
function findIndexesReadWhole(node: PlanNode, indexes: IndexColumns): string[] {
  const inner = (node.Plans ?? []).flatMap((each) => findIndexesReadWhole(each, indexes));
  const { 'Index Name': name = '', 'Index Cond': condition = '' } = node;
  const [, second, ...later] = (indexes.get(name) ?? []).filter((column) => /^\w+$/.test(column));
  const mentions = (column: string) => new RegExp(`\\b${column}\\b`).test(condition);
  const isReadWhole = second !== undefined && !mentions(second) && later.some(mentions);
  return isReadWhole ? [...inner, `${name} by ${condition}`] : inner;
}

/**
 * Opens a connection that reports the work of each statement. The url's role must be a superuser, as it is on the
 * tests' own server.
 */
export async function openWatched(url: string): Promise<WatchedDatabase> {
  let ran: RanStatement[] = [];
  let indexes: IndexColumns = new Map();
  const onNotice = (message: string) => {
    const [, plan] = /^duration: [\s\S]*?plan:\n([\s\S]*)$/.exec(message) ?? [];
    if (plan === undefined) return;
    const { 'Query Text': text, Plan } = JSON.parse(plan);
    ran.push({
      text,
      rows: Math.round(sumRows(Plan)),
      plan: describePlan(Plan),
      indexesReadWhole: findIndexesReadWhole(Plan, indexes),
    });
  };
  const database = await openDatabase({
    url,
    max: 1,
    statementTimeoutMs: 60_000,
    deadlineMs: 60_000,
    onNotice,
  });
  indexes = await readIndexColumns(database);
  await database.sql.unsafe(SETTINGS).simple();
  return {
    database,
    async watch(run) {
      ran = [];
      await database.sql.unsafe('set auto_explain.log_min_duration = 0').simple();
      await run();
      await database.sql.unsafe('set auto_explain.log_min_duration = -1').simple();
      return ran;
    },
    close: () => database.close(),
  };
}
