import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readOverlay } from '../../k8s/check/overlay.ts';
import { startEndpointBalancer } from '../load/balancer.ts';
import { startClients } from '../load/clients.ts';
import { endPod, type PodEnd, readPodLife, startPod } from '../load/kubelet.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { findFaults } from '../support/invariants.ts';

/**
 * Rolls out local processes with the values of the production manifests. This test acts as kubelet and as endpoint
 * controller, and HAProxy is the balancer. All waits are a tenth of the real ones. `TEST_ROLLOUT_SCALE=1 npx vitest run
 * test/long/rollout.test.ts` uses the full waits.
 */
const SCALE = Number(process.env.TEST_ROLLOUT_SCALE ?? 0.1);

const REPLICAS = 3;

/**
 * The pause between a client's requests. With it, many requests are in flight at any moment, but other tests still get
 * CPU time.
 */
const PAUSE_MS = SCALE < 1 ? 50 : 0;

/**
 * The longest time until a cluster's balancers learn of a new or ending pod, as a share of preStop. It is below 1,
 * because preStop must be longer than that time.
 */
const shareOfPreStop = 0.75;

const makeUsers = (fleet: Fleet) =>
  Promise.all(Array.from({ length: 4 }, () => fleet.user({ premium: true })));

test('a roll-out by the manifests replaces every pod under load, and no request fails', async () => {
  const life = readPodLife(readOverlay('production'), SCALE);
  const lagMs = life.preStopMs * shareOfPreStop;
  await using fleet = await openFleet();
  await using balancer = await startEndpointBalancer(REPLICAS + 1);
  const pods = await Promise.all(Array.from({ length: REPLICAS }, () => startPod(fleet, life)));
  for (const { origin } of pods) await balancer.add(origin);
  const [users, idle] = await Promise.all([makeUsers(fleet), makeUsers(fleet)]);
  const clients = startClients(balancer.origin, users, idle, PAUSE_MS);

  const ends: PodEnd[] = [];
  for (const pod of pods) {
    const heir = await startPod(fleet, life);
    const tellBalancer = async () => {
      await sleep(lagMs);
      await balancer.add(heir.origin);
      await balancer.remove(pod.origin);
    };
    const [end] = await Promise.all([endPod(pod, life), tellBalancer()]);
    ends.push(end);
  }
  await clients.stop();

  const { failures, answered, added, followed } = clients.seen;
  if (SCALE === 1) console.log({ life, ends, answered });
  expect(failures).toEqual([]);
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  for (const user of users) {
    expect(added.get(user)!.length).toBeGreaterThan(10);
    expect(followed.get(user)).toEqual(added.get(user));
  }
  expect(await findFaults(fleet.databaseUrl)).toEqual([]);
});
