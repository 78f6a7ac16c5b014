import type { Redis } from 'ioredis';
import type { ClusterNode, TestCluster } from './redis-cluster.ts';

/** Moves empty slots of a cluster from node to node, as `redis-cli --cluster reshard` does. */

const askId = async (admin: Redis): Promise<string> => String(await admin.call('CLUSTER', 'MYID'));

/** The node that has a slot. */
export async function findOwner(cluster: TestCluster, slot: number): Promise<ClusterNode> {
  const admin = cluster.connect(cluster.nodes[0]!);
  try {
    const ranges = (await admin.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
    const [, , [, port]] = ranges.find(([from, to]) => from <= slot && slot <= to)!;
    return cluster.nodes.find((node) => node.port === port)!;
  } finally {
    admin.disconnect();
  }
}

/** Gives a slot without keys to another master; all masters know of it when this resolves. */
export async function moveSlot(cluster: TestCluster, slot: number, to: ClusterNode): Promise<void> {
  const from = await findOwner(cluster, slot);
  const [source, target] = [cluster.connect(from), cluster.connect(to)];
  const others = cluster.nodes.filter((node) => node !== from && node !== to).map(cluster.connect);
  try {
    const [sourceId, targetId] = [await askId(source), await askId(target)];
    await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
    await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
    for (const admin of [target, source, ...others])
      await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId).catch(() => {});
  } finally {
    for (const admin of [source, target, ...others]) admin.disconnect();
  }
}
