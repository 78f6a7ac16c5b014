import { setTimeout as sleep } from 'node:timers/promises';
import { runOn } from '../support/run-on.ts';
import type { Crash } from './database-nodes.ts';
import type { Fleet } from './fleet.ts';
import type { Random } from './random.ts';
import type { ServiceProcess } from './service-process.ts';

/** One way to hurt the service. It heals by itself before it resolves. */
export interface FaultKind {
  kind: string;
  /** How often it is drawn beside the others. */
  weight: number;
  /** What it may be done to; one thing suffers one fault at a time. */
  targets(fleet: Fleet): string[];
  run(fleet: Fleet, target: string, draw: Random): Promise<void>;
}

const processNames = ({ processes }: Fleet) => processes.map(({ name }) => name);

const findProcess = ({ processes }: Fleet, target: string): ServiceProcess =>
  processes.find(({ name }) => name === target)!;

/** Waits some milliseconds of a range. */
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

/** Those of the database: `postgres`, or `postgres-1` and on where it has several nodes. */
const serverNames = ({ database: { urls } }: Fleet) =>
  urls.length === 1 ? ['postgres'] : urls.map((_url, n) => `postgres-${n + 1}`);

const findServer = (fleet: Fleet, target: string) => fleet.database.urls[serverNames(fleet).indexOf(target)]!;

const terminateBackends: FaultKind = {
  kind: 'pg_terminate_backend',
  weight: 3,
  targets: serverNames,
  async run(fleet, target, draw) {
    const share = draw.pick([0.1, 0.5, 1]);
    // What one node does for another one has a name of its own.
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
    // At once as well: nobody may notice but by what is lost.
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

/** No connection ends: the old master goes on to take what is published to it. */
const failOverRedis: FaultKind = {
  kind: 'failover',
  weight: 4,
  targets: ({ redis }) => (redis.failOver === undefined ? [] : ['redis']),
  // A node that is killed or frozen just now takes no command.
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
    // What was held back is lost, so the connection is of no more use; new ones were served all the while.
    proxy.cut('reset');
  },
};

/** All of them. */
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
