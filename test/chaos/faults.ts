import { setTimeout as sleep } from 'node:timers/promises';
import { runOn } from '../support/run-on.ts';
import type { Crash } from './database-nodes.ts';
import type { Fleet } from './fleet.ts';
import type { Random } from './random.ts';
import type { ServiceProcess } from './service-process.ts';

/** A kind of fault. `run` causes the fault, repairs it, and then resolves. */
export interface FaultKind {
  kind: string;
  /** The probability of this kind of fault, relative to the other kinds. */
  weight: number;
  /** Returns the parts of the fleet that this kind of fault can affect. A part has only one fault at a time. */
  targets(fleet: Fleet): string[];
  run(fleet: Fleet, target: string, draw: Random): Promise<void>;
}

const processNames = ({ processes }: Fleet) => processes.map(({ name }) => name);

const findProcess = ({ processes }: Fleet, target: string): ServiceProcess =>
  processes.find(({ name }) => name === target)!;

/** Waits for a random time in a range. */
const linger = (draw: Random, minMs: number, maxMs: number) => sleep(draw.integer(minMs, maxMs));

const endAndRestart = (signal: 'SIGKILL' | 'SIGTERM'): FaultKind => ({
  kind: signal,
  weight: signal === 'SIGKILL' ? 4 : 2,
  targets: processNames,
  async run(fleet, target, draw) {
    const process = findProcess(fleet, target);
    await process.end(signal);
    await linger(draw, 100, 1_500);
    await process.start();
  },
});

const freezeProcess: FaultKind = {
  kind: 'SIGSTOP',
  weight: 3,
  targets: processNames,
  async run(fleet, target, draw) {
    const process = findProcess(fleet, target);
    await process.freeze();
    await linger(draw, 500, 5_000);
    process.thaw();
  },
};

const stepClock: FaultKind = {
  kind: 'clock step',
  weight: 1,
  targets: processNames,
  async run(fleet, target, draw) {
    const process = findProcess(fleet, target);
    process.stepClock(draw.pick([-3_600_000, -30_000, -1_500, 1_500, 30_000, 3_600_000]));
    await linger(draw, 500, 5_000);
    process.stepClock(0);
  },
};

/** Returns the names of the database's nodes: `postgres`, or `postgres-1` and so on if there are several. */
const serverNames = ({ database: { urls } }: Fleet) =>
  urls.length === 1 ? ['postgres'] : urls.map((_url, n) => `postgres-${n + 1}`);

const findServer = (fleet: Fleet, target: string) => fleet.database.urls[serverNames(fleet).indexOf(target)]!;

const terminateBackends: FaultKind = {
  kind: 'pg_terminate_backend',
  weight: 3,
  targets: serverNames,
  async run(fleet, target, draw) {
    const share = draw.pick([0.1, 0.5, 1]);
    // Also ends the connections between nodes. These connections have an application name of their own.
    await runOn(
      findServer(fleet, target),
      `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and random() < ${share}
        and (application_name like 'bookmark-service%' or application_name like 'citus_internal%')`,
    );
  },
};

const crashServer = (how: Crash): FaultKind => ({
  kind: how === 'SIGQUIT' ? 'immediate restart' : 'kill and restart',
  weight: 1,
  targets: serverNames,
  run: (fleet, target, draw) => fleet.database.crash(findServer(fleet, target), how, draw),
});

const moveRows: FaultKind = {
  kind: 'shards moved',
  weight: 4,
  targets: ({ database }) => (database.moveRows === undefined ? [] : ['rows of postgres']),
  run: ({ database }, _target, draw) => database.moveRows!(draw),
};

const nodeNames = ({ redis }: Fleet) => redis.nodes.map((_node, n) => `redis-${n + 1}`);

const findNode = ({ redis }: Fleet, target: string) =>
  redis.nodes[Number(target.slice('redis-'.length)) - 1]!;

const killRedis: FaultKind = {
  kind: 'kill, restart empty',
  weight: 2,
  targets: nodeNames,
  async run(fleet, target, draw) {
    const node = findNode(fleet, target);
    await node.kill();
    // With a pause of 0, clients can reconnect almost immediately, but the data is gone.
    await linger(draw, 0, draw.pick([0, 3_000]));
    await node.restart();
  },
};

const freezeRedis: FaultKind = {
  kind: 'SIGSTOP',
  weight: 2,
  targets: nodeNames,
  async run(fleet, target, draw) {
    const node = findNode(fleet, target);
    await node.freeze();
    await linger(draw, 300, 4_000);
    await node.thaw();
  },
};

/** Promotes a Redis replica to master. No connection closes, so the old master still accepts messages. */
const failOverRedis: FaultKind = {
  kind: 'failover',
  weight: 4,
  targets: ({ redis }) => (redis.failOver === undefined ? [] : ['redis']),
  // The failover fails if the node is killed or frozen. That is no error here.
  run: async ({ redis }, _target, draw) => redis.failOver!(draw).catch(() => {}),
};

const cutConnections: FaultKind = {
  kind: 'connections cut',
  weight: 4,
  targets: ({ proxies }) => [...proxies.keys()],
  async run({ proxies }, target, draw) {
    proxies.get(target)!.cut(draw.pick(['end', 'reset']));
  },
};

const stallConnections: FaultKind = {
  kind: 'connections stalled',
  weight: 3,
  targets: ({ proxies }) => [...proxies.keys()],
  async run({ proxies }, target, draw) {
    const proxy = proxies.get(target)!;
    proxy.stall();
    await linger(draw, 500, 4_000);
    // The proxy dropped the bytes that were sent while the connections were stalled, so these connections are useless.
    // New connections work.
    proxy.cut('reset');
  },
};

/** All kinds of faults. */
export const FAULT_KINDS: readonly FaultKind[] = [
  endAndRestart('SIGKILL'),
  endAndRestart('SIGTERM'),
  freezeProcess,
  stepClock,
  terminateBackends,
  crashServer('SIGQUIT'),
  crashServer('SIGKILL'),
  moveRows,
  killRedis,
  freezeRedis,
  failOverRedis,
  cutConnections,
  stallConnections,
];
