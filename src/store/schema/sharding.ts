import type { Sql } from '../driver/database.ts';
import { type DatabaseLog, NEEDED_SETTINGS } from '../driver/open.ts';
import { onlyRow } from '../outcomes.ts';

/**
 * Distributes the tables over the nodes of a Citus cluster. A user's rows are all on one node, because tables whose
 * primary key begins with `user_id` are distributed by that column. All other tables are reference tables, which every
 * node holds completely. "Worker node" means a node of Citus. "Worker" alone means a process of this service.
 */

/** How the tables of a database are stored: on one server, or distributed by Citus. */
type Sharding = 'none' | 'citus';

/**
 * Reads how the tables are stored. Throws if sharding is wanted but the extension is missing, or if Citus stores the
 * table `accounts` but does not distribute it by `user_id`.
 */
export async function readSharding(sql: Sql, wanted: 'citus' | undefined): Promise<Sharding> {
  const installed = await sql`select from pg_extension where extname = 'citus'`;
  if (installed.length === 0) {
    if (wanted === undefined) return 'none';
    throw new ShardingRefused(
      'the database has no extension `citus`: run `create extension citus` in it on every node, ' +
        'add the worker nodes on the coordinator, and migrate again',
    );
  }
  const [accounts] = await sql<{ column: string | null }[]>`
    select case when partmethod = 'h' then column_to_column_name(logicalrelid, partkey) end as column
    from pg_dist_partition
    where logicalrelid = to_regclass('accounts')`;
  if (accounts === undefined) return 'none';
  if (accounts.column === 'user_id') return 'citus';
  throw new ShardingRefused(
    `the table accounts is distributed already, ${accounts.column ? `by ${accounts.column}` : 'and not by user_id'}`,
  );
}

/**
 * Throws if this node is not the coordinator, which alone can change the tables of the cluster. Also throws if the
 * numbers of two groups of nodes have the same remainder modulo 256. The nodes of two such groups would give the same
 * ids (`make_sequence`).
 */
export async function checkCluster(sql: Sql): Promise<void> {
  const rows = await sql<{ isWorkerNode: boolean; clashingGroups: string | null }[]>`
    select
      (select groupid <> 0 from pg_dist_local_group) as "isWorkerNode",
      (
        select string_agg(groups, '; ')
        from (
          select string_agg(distinct groupid::text, ' and ') as groups
          from pg_dist_node
          where noderole = 'primary'
          group by groupid % 256
          having count(distinct groupid) > 1
        ) clashes
      ) as "clashingGroups"`;
  const { isWorkerNode, clashingGroups } = onlyRow(rows);
  if (isWorkerNode)
    throw new ShardingRefused('this is a worker node of the cluster: migrate through the coordinator');
  if (clashingGroups !== null)
    throw new ShardingRefused(
      `the nodes of the groups ${clashingGroups} would give the same ids: remove the newest of them and add it again`,
    );
}

/**
 * A query that returns true if this node was upgraded by pg_upgrade and Citus does not know the node's tables yet.
 * Until Citus knows them, distributed tables look empty on this node, and new rows would be stored only here.
 * `citus_prepare_pg_upgrade` creates the table `public.pg_dist_partition`.
 */
const IS_UNFINISHED = `
select to_regclass('public.pg_dist_partition') is not null and not exists (select from pg_catalog.pg_dist_partition)`;

const unfinishedUpgrade = (where: string) =>
  new ShardingRefused(
    `${where} upgraded by pg_upgrade, and does not know its tables yet: ` +
      'run `select citus_finish_pg_upgrade()` in this database on every node, and try again',
  );

/** Throws if this node was upgraded by pg_upgrade and the upgrade is not finished. */
export async function refuseUnfinished(sql: Sql): Promise<void> {
  const upgraded = await sql`
    select from pg_extension where extname = 'citus' and to_regclass('public.pg_dist_partition') is not null`;
  if (upgraded.length === 0) return;
  const rows = await sql.unsafe<{ isUnfinished: boolean }[]>(`select (${IS_UNFINISHED}) as "isUnfinished"`);
  if (onlyRow(rows).isUnfinished) throw unfinishedUpgrade('this node was');
}

/** Throws if a reachable node was upgraded by pg_upgrade and the upgrade is not finished. */
export async function refuseUnfinishedNodes(sql: Sql): Promise<void> {
  const rows = await sql<{ nodes: string | null }[]>`
    select string_agg(nodename || ':' || nodeport, ', ') as nodes
    from run_command_on_all_nodes(${IS_UNFINISHED})
    join pg_dist_node using (nodeid)
    where success and result = 't'`;
  const { nodes } = onlyRow(rows);
  if (nodes !== null) throw unfinishedUpgrade(`at ${nodes} the node was`);
}

/**
 * Releases of Citus that never find the cached plan of a shard. They plan a prepared statement again at each call, and
 * leak memory (citusdata/citus#8371; #8824 fixes it).
 */
const RELEASES_THAT_LEAK: ReadonlySet<string> = new Set(['13.2.1', '13.2.2', '14.0.0', '14.0.1', '14.1.0']);

/**
 * How the nodes plan prepared statements: `auto`, or `force_custom_plan` if a node runs a release that leaks memory.
 */
export type PlanCacheMode = 'auto' | 'force_custom_plan';

/**
 * Chooses the mode for this cluster. Warns if a node runs a release that `docs/citus.md` says to avoid. On such a
 * release, `force_custom_plan` is as fast as `auto`, and does not leak memory.
 */
export async function readPlanCacheMode(sql: Sql, log: DatabaseLog | undefined): Promise<PlanCacheMode> {
  const nodes = await sql<{ release: string; node: number }[]>`
    select substring(result from '^Citus ([0-9.]+)') as release, nodeid as node
    from run_command_on_all_nodes('select citus_version()')
    where success`;
  const leaking = nodes.filter(({ release }) => RELEASES_THAT_LEAK.has(release));
  for (const { release, node } of leaking)
    log?.warn({ node, release }, 'this release of Citus plans every statement again: use 13.1.1 or 13.2.0');
  return leaking.length > 0 ? 'force_custom_plan' : 'auto';
}

/** The database cannot be distributed in its present state. The message says what to do. */
export class ShardingRefused extends Error {
  override readonly name = 'ShardingRefused';

  constructor(reason: string) {
    super(`DATABASE_SHARDING=citus: ${reason}`);
  }
}

/** Returns the settings that `prepareNodes` gives to the database on each node. */
const nodeSettings = (mode: PlanCacheMode) => ({ ...NEEDED_SETTINGS, plan_cache_mode: mode });

/** Returns a query that says whether a node is prepared. Each node runs it. */
const nodeIsReady = (mode: PlanCacheMode) => `
select bool_and(current_setting(name) = needed) and to_regclass('users_id_seq') is not null and known_epoch() is not null
from json_each_text('${JSON.stringify(nodeSettings(mode))}') needed (name, needed)`;

/**
 * Prepares every node from the coordinator, including nodes that were added since the last call:
 *
 * - Sequences: without this step, the first transaction that takes an id from a sequence would create the sequence on
 *   its node. All other transactions would wait until that transaction has committed on all nodes.
 * - The epoch: a new epoch is written to all nodes. Without this step, the first read of changes on a node would fail
 *   while another node is down.
 * - Settings: a connection between nodes does not have the settings of a replica's connections. So the database on each
 *   node gets these settings. For example, with `jit` a page of changes would take seconds.
 */
export async function prepareNodes(
  sql: Sql,
  mode: PlanCacheMode,
  log: DatabaseLog | undefined,
): Promise<void> {
  // Only the coordinator prepares nodes. On any other node, this query returns no rows.
  const unready = await sql`
    select from run_command_on_all_nodes(${nodeIsReady(mode)})
    where success and result <> 't' and (select groupid = 0 from pg_dist_local_group)`;
  if (unready.length === 0) return;
  await sql`
    select run_command_on_workers(format('select make_sequence(%L)', relname))
    from pg_class
    where relnamespace = current_schema()::regnamespace and relkind = 'S'`;
  // Begins an epoch on each node that has none. The nodes do this one after another, because each of them writes a row
  // to the table `epoch` on all nodes.
  await sql`select run_command_on_all_nodes('select current_epoch()', parallel => false)`;
  const refused = await sql<{ node: number; reason: string }[]>`
    select nodeid as node, result as reason from run_command_on_all_nodes(${setOnNode(mode)}) where not success`;
  for (const { node, reason } of refused)
    log?.warn({ node, reason, settings: nodeSettings(mode) }, 'a node refused settings of the database');
}

/**
 * Returns a statement with which each node changes its own database. Citus would propagate the settings only to
 * databases whose object id it knows, and a copy of a database has another id.
 */
const setOnNode = (mode: PlanCacheMode) => `
do $settings$
begin
  set local citus.enable_ddl_propagation = off;
${Object.entries(nodeSettings(mode))
  .map(
    ([name, value]) =>
      `  execute format('alter database %I set ${name} = ''${value}''', current_database());`,
  )
  .join('\n')}
end
$settings$`;

/**
 * A setting for a transaction that changes tables: Citus changes one shard after the other. Foreign keys to reference
 * tables require this.
 */
export const CHANGE_IN_ORDER = `set local citus.multi_shard_modify_mode = 'sequential';`;

/**
 * Distributes each table that is not distributed yet. A table is distributed after the tables that its foreign keys
 * refer to. Existing rows move with their table.
 */
export const DISTRIBUTE_TABLES = `
do $distribute$
declare
  v_table regclass;
  v_has_user_id boolean;
  v_column record;
begin
  -- Each node takes ids from its own sequences (next_id), because ids from the sequences of Citus would exceed 2^53.
  for v_column in
    select d.adrelid::regclass as relation, a.attname as name, s.oid::regclass as sequence
    from pg_attrdef d
    join pg_class c on c.oid = d.adrelid and c.relnamespace = current_schema()::regnamespace
    join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
    join pg_depend used on used.classid = 'pg_attrdef'::regclass and used.objid = d.oid
    join pg_class s on s.oid = used.refobjid and s.relkind = 'S'
  loop
    execute format('alter table %s alter column %I drop default', v_column.relation, v_column.name);
    execute format(
      'alter sequence %s increment 256 start 256 restart %s', v_column.sequence,
      (coalesce(pg_sequence_last_value(v_column.sequence), 0) / 256 + 1) * 256
    );
    execute format('grant usage on sequence %s to public', v_column.sequence);
  end loop;
  loop
    select c.oid::regclass, a.attname = 'user_id'
    into v_table, v_has_user_id
    from pg_class c
    join pg_index i on i.indrelid = c.oid and i.indisprimary
    join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
      -- The table does not belong to an extension, and is neither distributed ('h') nor a reference table ('t') yet.
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
      and not exists (
        select from pg_dist_partition p
        where p.logicalrelid = c.oid and (p.partmethod = 'h' or p.repmodel = 't')
      )
      -- All tables that its foreign keys refer to are distributed or reference tables already.
      and not exists (
        select from pg_constraint f
        where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid
          and not exists (
            select from pg_dist_partition p
            where p.logicalrelid = f.confrelid and (p.partmethod = 'h' or p.repmodel = 't')
          )
      )
    order by c.relname <> 'accounts', c.relname
    limit 1;
    exit when not found;
    if not v_has_user_id then
      perform create_reference_table(v_table);
      continue;
    end if;
    -- Citus cannot move an unlogged table to another node while rows are written to it.
    if (select relpersistence = 'u' from pg_class where oid = v_table) then
      execute format('alter table %s set logged', v_table);
    end if;
    perform create_distributed_table(
      v_table, 'user_id', colocate_with := case when v_table = 'accounts'::regclass then 'none' else 'accounts' end
    );
  end loop;
end
$distribute$;`;

/**
 * Returns SQL that distributes each function whose first argument is a user's id. Such a function runs on the node with
 * the user's rows.
 */
export const distributeFunctions = (names: readonly string[], mode: PlanCacheMode): string => `
do $distribute$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and p.proname = any ('{${names.join(',')}}')
      and p.proargnames[1] = 'p_user_id'
  loop
    perform create_distributed_function(v_function, 'p_user_id', colocate_with := 'accounts');
    -- This setting replaces 'force_generic_plan', because Citus plans most statements only for the values of a call.
    -- prepareNodes sets the mode for the database too. But the owner of the tables may not be allowed to do that, so
    -- each function also gets the mode.
    if not exists (
      select from pg_proc where oid = v_function and 'plan_cache_mode=force_custom_plan' = any (proconfig)
    ) then
      execute format('alter function %s set plan_cache_mode = ${mode}', v_function);
    end if;
    -- A stable function inside a statement runs on the node with the user's rows. Everything that the function reads is
    -- on that node, so it may run distributed statements there.
    if exists (select from pg_proc where oid = v_function and provolatile = 's') then
      execute format('alter function %s set citus.allow_nested_distributed_execution = on', v_function);
    end if;
  end loop;
end
$distribute$;`;
