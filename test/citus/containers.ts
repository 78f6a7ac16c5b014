import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers';
import { findFreePort } from '../support/ports.ts';
import { runOn } from '../support/run-on.ts';

/** Not the versions that the tests were seen on, which docs/operation.md names: of images, the nearest to them. */
const IMAGE = 'citusdata/citus:14.0.0-pg17';

/** A coordinator and two worker nodes in containers, on this machine's network: tests and nodes then have one address for each. */
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
      // The first time is that of the server that makes the database.
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
