import type { Database } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/open-database.ts';

/** A node of a plan, as `auto_explain` writes it. The rows and loops were counted while the statement ran. */
interface PlanNode {
  'Node Type': string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** A statement that ran, possibly inside a function. */
export interface RanStatement {
  text: string;
  /** The rows that all nodes of its plan returned or discarded. */
  rows: number;
  /** The types of the nodes and their rows, for the message of a failed test. */
  plan: string;
}

/** A database on one connection that reports how many rows each statement handled. */
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

/**
 * Opens a connection that reports the work of each statement. The role must be a superuser, as on the tests' own
 * server.
 */
export async function openWatched(url: string): Promise<WatchedDatabase> {
  let ran: RanStatement[] = [];
  const onNotice = (message: string) => {
    const [, plan] = /^duration: [\s\S]*?plan:\n([\s\S]*)$/.exec(message) ?? [];
    if (plan === undefined) return;
    const { 'Query Text': text, Plan } = JSON.parse(plan);
    ran.push({ text, rows: Math.round(sumRows(Plan)), plan: describePlan(Plan) });
  };
  const database = await openDatabase({
    url,
    max: 1,
    statementTimeoutMs: 60_000,
    deadlineMs: 60_000,
    onNotice,
  });
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
