import { messageOf } from '../../domain/thrown.ts';
import type { SemaphoreGauges } from '../../flow/semaphore.ts';
import type { Database, Sql, Statement } from './database.ts';
import { DatabaseUnavailable, type UnavailableReason } from './errors.ts';
import { type DatabaseLog, type DatabaseOptions, openDatabase } from './open.ts';
import { findShard, type NodeAddress, type Shard } from './placement.ts';
import { urlOfNode } from './url.ts';

/**
 * How often the service reads which node has which users. If a user's rows have moved since the latest read, the user's
 * statements still go to the old node, which forwards them.
 */
const REFRESH_MS = 10_000;

/** The pool of connections to one node. If the node refuses a statement, `#any` runs the statement on any node. */
class NodeDatabase implements Database {
  readonly #pool: Database;
  readonly #any: Database;
  /** False after the node has refused a statement, until `check` succeeds. */
  isUp = true;

  constructor(pool: Database, any: Database) {
    this.#pool = pool;
    this.#any = any;
  }

  get sql(): Sql {
    return this.#pool.sql;
  }

  get gauges(): SemaphoreGauges {
    return this.#pool.gauges;
  }

  at(): Database {
    return this;
  }

  read<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T> {
    return this.#fallBackToAny(this.#pool.read(run, deadlineMs), () => this.#any.read(run, deadlineMs));
  }

  readShort<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T> {
    return this.#fallBackToAny(this.#pool.readShort(run, deadlineMs), () =>
      this.#any.readShort(run, deadlineMs),
    );
  }

  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T> {
    return this.#fallBackToAny(this.#pool.write(run), () => this.#any.write(run));
  }

  async #fallBackToAny<T>(statement: Promise<T>, runAtAny: () => Promise<T>): Promise<T> {
    try {
      return await statement;
    } catch (error) {
      const isRefused =
        error instanceof DatabaseUnavailable && !error.mayHaveRun && REFUSALS.has(error.reason);
      if (!isRefused) throw error;
      this.isUp = false;
      return runAtAny();
    }
  }

  /** Checks the node. Rejects if it still refuses statements. */
  async check(): Promise<void> {
    await this.#pool.read((sql) => sql`select 1`);
    this.isUp = true;
  }

  close(graceMs?: number): Promise<void> {
    return this.#pool.close(graceMs);
  }
}

/** An error with one of these reasons means that the node cannot serve, and that the statement had no effect. */
const REFUSALS: ReadonlySet<UnavailableReason> = new Set(['connect', 'resources']);

/** A shard, with the key of its node as `keyOf` returns it. */
interface PlacedShard {
  min: number;
  node: string;
}

/**
 * The nodes of a Citus cluster: one pool whose connections go to any node, and one pool for each node. `at` returns the
 * pool to the node with a user's rows, so that no other node must forward the statement. Every node serves every user.
 * So responses are correct even if the known placement is out of date, or if a node has no pool.
 */
class PlacedDatabase implements Database {
  readonly #any: Database;
  readonly #options: DatabaseOptions;
  readonly #template: string;
  readonly #log: DatabaseLog | undefined;
  readonly #nodes = new Map<string, NodeDatabase>();
  #shards: PlacedShard[] = [];
  #refreshing: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout;
  /** The reason for the latest warning, keyed by node or by `placement`. A fault that continues is logged only once. */
  readonly #warned = new Map<string, string>();

  /** `any` is the pool to any node. `options` are the options of the pools to single nodes, except their url. */
  constructor(any: Database, template: string, options: DatabaseOptions) {
    this.#any = any;
    this.#template = template;
    this.#options = options;
    this.#log = options.log;
    this.#timer = setInterval(() => void this.refresh(), REFRESH_MS).unref();
  }

  at(userId: number): Database {
    const shard = findShard(this.#shards, userId);
    const node = shard && this.#nodes.get(shard.node);
    return node?.isUp ? node : this.#any;
  }

  /**
   * Reads the placement of users. Opens pools to new nodes, closes pools to nodes that have left the cluster, and
   * checks nodes that refused a statement.
   */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#read().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #read(): Promise<void> {
    const shards = await this.#any.read(readShards).catch((error: Error) => {
      this.#warn('placement', error.message, 'the placement of users cannot be read: any node is asked');
    });
    if (shards === undefined) return;
    this.#warned.delete('placement');
    const nodesByKey = new Map(shards.map((shard) => [keyOf(shard), shard]));
    this.#shards = shards.map((shard) => ({ min: shard.min, node: keyOf(shard) }));
    await Promise.all([...nodesByKey].map(([key, node]) => this.#connect(key, node)));
    for (const [key, database] of this.#nodes) {
      if (nodesByKey.has(key)) continue;
      this.#nodes.delete(key);
      void database.close();
    }
  }

  /**
   * Opens the pool to a node. If the pool exists and the node refused a statement, checks whether the node serves
   * again.
   */
  async #connect(key: string, node: NodeAddress): Promise<void> {
    const pool = this.#nodes.get(key);
    if (pool?.isUp) return;
    try {
      if (pool) await pool.check();
      else this.#nodes.set(key, await this.#open(node));
      this.#warned.delete(key);
    } catch (error) {
      this.#warn(
        key,
        messageOf(error),
        'a node cannot be asked directly: its users are asked for at any node',
      );
    }
  }

  async #open(node: NodeAddress): Promise<NodeDatabase> {
    const url = urlOfNode(this.#options.url, this.#template, node);
    return new NodeDatabase(await openDatabase({ ...this.#options, url }), this.#any);
  }

  #warn(key: string, reason: string, message: string): void {
    if (this.#warned.get(key) === reason) return;
    this.#warned.set(key, reason);
    this.#log?.warn({ node: key, reason }, message);
  }

  get sql(): Sql {
    return this.#any.sql;
  }

  get gauges(): SemaphoreGauges {
    const all = [this.#any, ...this.#nodes.values()].map(({ gauges }) => gauges);
    const sum = (name: 'size' | 'inUse' | 'waiting') =>
      all.reduce((total, gauges) => total + gauges[name], 0);
    return {
      size: sum('size'),
      inUse: sum('inUse'),
      waiting: sum('waiting'),
      oldestWaitMs: Math.max(...all.map(({ oldestWaitMs }) => oldestWaitMs)),
    };
  }

  read<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T> {
    return this.#any.read(run, deadlineMs);
  }

  readShort<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>, deadlineMs?: number): Promise<T> {
    return this.#any.readShort(run, deadlineMs);
  }

  write<T extends readonly unknown[]>(run: (sql: Sql) => Statement<T>): Promise<T> {
    return this.#any.write(run);
  }

  async close(graceMs?: number): Promise<void> {
    clearInterval(this.#timer);
    this.#shards = [];
    await this.#refreshing;
    await Promise.all([this.#any, ...this.#nodes.values()].map((each) => each.close(graceMs)));
  }
}

const keyOf = ({ host, port }: NodeAddress): string => `${host}:${port}`;

const readShards = (sql: Sql) => sql<Shard[]>`
  select shardminvalue::integer as min, nodename as host, nodeport as port
  from pg_dist_shard
  join pg_dist_placement using (shardid)
  join pg_dist_node using (groupid)
  where logicalrelid = 'accounts'::regclass and noderole = 'primary' and isactive
  order by min`;

/**
 * Opens a pool. `nodes` is the template of `urlOfNode`. If it is given, the function also opens a pool to each node of
 * the cluster (docs/citus.md, "Ask the user's node"). Rejects like `openDatabase` if no node can be reached.
 */
export async function openPlaced(options: DatabaseOptions, nodes: string | undefined): Promise<Database> {
  const any = await openDatabase(options);
  if (nodes === undefined) return any;
  const placed = new PlacedDatabase(any, nodes, options);
  await placed.refresh();
  return placed;
}
