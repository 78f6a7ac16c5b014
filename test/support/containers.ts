import type { GenericContainer } from 'testcontainers';

/** Whether `TEST_CONTAINERS=1` tells the tests to start Postgres and Redis as containers. */
export const usesContainers = (): boolean => process.env.TEST_CONTAINERS === '1';

// The library is loaded only if it is needed, because loading it takes half a second of CPU time in each process.

/** Returns whether a container engine responds. */
export async function hasContainerEngine(): Promise<boolean> {
  const { getContainerRuntimeClient } = await import('testcontainers');
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

/** A server in a container. Its data stay until `remove`. */
export interface ContainerServer {
  /** Sends a signal. Resolves when the server has ended, or immediately if it has already ended. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Starts the server again after `end`. */
  startAgain(): Promise<void>;
  isRunning(): Promise<boolean>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  remove(): Promise<void>;
}

/** Starts a container that uses this machine's network, so its ports are ports of this machine. */
export async function startContainer(
  image: string,
  configure: (container: GenericContainer) => GenericContainer,
): Promise<ContainerServer> {
  const { GenericContainer, getContainerRuntimeClient } = await import('testcontainers');
  const started = await configure(new GenericContainer(image).withNetworkMode('host')).start();
  const engine = await getContainerRuntimeClient();
  const container = engine.container.getById(started.getId());
  return {
    end: async (signal) => {
      // A frozen container receives no signal, and a container that has ended cannot be unpaused.
      await container.unpause().catch(() => {});
      await container.kill({ signal }).catch(() => {});
      // Waiting fails only if the container has been removed already.
      await container.wait().catch(() => {});
    },
    startAgain: () => container.start(),
    isRunning: async () => (await container.inspect()).State.Running,
    freeze: () => container.pause(),
    thaw: () => container.unpause(),
    remove: async () => void (await started.stop().catch(() => {})),
  };
}
