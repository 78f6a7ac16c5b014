import { startContainer } from './containers.ts';
import type { RedisRun } from './redis-process.ts';

/** The image of compose.yaml. */
const IMAGE = 'redis:8.2';

/** Runs a Redis server in a container. `folder` is the same folder for the server and for the tests. */
export async function startRedisContainer(args: string[], folder: string): Promise<RedisRun> {
  const server = await startContainer(IMAGE, (container) =>
    container
      .withUser('root')
      .withBindMounts([{ source: folder, target: folder }])
      .withCommand(['redis-server', ...args]),
  );
  return {
    ...server,
    end: async (signal) => {
      await server.end(signal);
      await server.remove();
    },
  };
}
