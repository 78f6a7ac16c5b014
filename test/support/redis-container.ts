import { GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import type { RedisRun } from './redis-process.ts';

const IMAGE = 'redis:7.4.6-alpine';

/** Returns whether a container engine responds. */
export async function hasContainerEngine(): Promise<boolean> {
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

/** Runs a Redis server in a container that uses this machine's network, so its ports are ports of this machine. */
export async function startRedisContainer(args: string[], folder: string): Promise<RedisRun> {
  const started = await new GenericContainer(IMAGE)
    .withNetworkMode('host')
    .withUser('root')
    .withBindMounts([{ source: folder, target: folder }])
    .withCommand(['redis-server', ...args])
    .start();
  const engine = await getContainerRuntimeClient();
  const container = engine.container.getById(started.getId());
  return {
    end: async (signal) => {
      // A frozen container receives no signal, and a container that has ended cannot be unpaused.
      await container.unpause().catch(() => {});
      await container.kill({ signal }).catch(() => {});
      await container.wait();
      await started.stop().catch(() => {});
    },
    isRunning: async () => (await container.inspect()).State.Running,
    freeze: () => container.pause(),
    thaw: () => container.unpause(),
  };
}
