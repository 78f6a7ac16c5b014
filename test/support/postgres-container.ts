import type { ServerSettings } from '../../src/embedded/server.ts';
import { startContainer } from './containers.ts';
import { findFreePort } from './ports.ts';
import type { PostgresServer } from './postgres-server.ts';
import { runOn } from './run-on.ts';
import { until } from './until.ts';

/** The image of compose.yaml. */
const IMAGE = 'postgres:18.4';

/** Starts a private Postgres in a container, with these settings. Its databases get the ICU locale, or else `C`. */
export async function startPostgresContainer(
  settings: ServerSettings,
  locale: string | undefined,
): Promise<PostgresServer> {
  const port = await findFreePort();
  const url = `postgres://bookmarks@127.0.0.1:${port}/bookmarks`;
  const all = { ...settings, port, listen_addresses: '127.0.0.1' };
  const icu = locale === undefined ? '' : ` --locale-provider=icu --icu-locale=${locale}`;
  const server = await startContainer(IMAGE, (container) =>
    container
      .withEnvironment({
        POSTGRES_USER: 'bookmarks',
        POSTGRES_HOST_AUTH_METHOD: 'trust',
        POSTGRES_INITDB_ARGS: `--encoding=UTF8 --locale=C${icu}`,
      })
      .withSharedMemorySize(1 << 30)
      .withCommand([
        'postgres',
        ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ]),
  );
  const untilOpen = () =>
    until(async () => {
      if (!(await server.isRunning())) throw new Error('the container of Postgres has ended');
      return runOn(url, 'select 1').then(
        () => true,
        () => false,
      );
    });
  await untilOpen();
  const stop = async () => {
    await server.end('SIGKILL');
    await server.remove();
  };
  return {
    url,
    port,
    crash: (signal) => server.end(signal),
    kill: () => server.end('SIGKILL'),
    shutDown: () => server.end('SIGINT'),
    restart: async () => {
      await server.end('SIGINT');
      await server.startAgain();
      await untilOpen();
    },
    freeze: () => server.freeze(),
    thaw: () => server.thaw(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
