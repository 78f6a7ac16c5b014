import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import { findFreePort } from '../support/ports.ts';
import { runOn } from '../support/run-on.ts';

/** The image with the versions of Postgres and Citus that are closest to the tested ones (see docs/operation.md). */
const IMAGE = 'citusdata/citus:14.0.0-pg17';

/**
 * Starts a coordinator and two worker nodes in containers. The containers use this machine's network, so a node has the
 * same address for the tests as for the other nodes.
 */
export async function startCluster(): Promise<{ url: string; stop(): Promise<void> }> {
  const started: StartedTestContainer[] = [];
  const stop = async () => {
    await Promise.all(started.map((container) => container.stop()));
  };
  const start = async () => {
    const port = await findFreePort();
    const container = await new GenericContainer(IMAGE)
      .withNetworkMode('host')
      .withEnvironment({ POSTGRES_HOST_AUTH_METHOD: 'trust' })
      .withCommand(['postgres', '-p', String(port), '-c', 'wal_level=logical', '-c', 'max_connections=300'])
      // The message appears twice. The first one comes from a temporary server that creates the database.
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
      .start();
    started.push(container);
    return port;
  };
  try {
    const [coordinator, ...workers] = [await start(), await start(), await start()];
    const url = `postgres://postgres@127.0.0.1:${coordinator}/postgres`;
    await runOn(url, `select citus_set_coordinator_host('127.0.0.1', ${coordinator})`);
    for (const port of workers) await runOn(url, `select citus_add_node('127.0.0.1', ${port})`);
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
