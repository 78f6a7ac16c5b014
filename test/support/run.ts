import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the test run. It is removed at the end of the run. */
    runDir: string;
    /** The url of a Postgres whose user may create databases. No test changes the database that the url names. */
    postgresUrl: string;
    /** The name of a migrated database that tests copy. */
    templateDatabase: string;
    /** The url of the coordinator, if the tests run on a Citus cluster. In that case, every database is sharded. */
    citusUrl: string | undefined;
    /** The name of the migrated database that tests copy. All nodes of the cluster have it. */
    citusTemplate: string | undefined;
    /** The Redis that `TEST_REDIS_URL` names. */
    redisUrl: string | undefined;
    /**
     * Whether Redis servers run in containers: with `TEST_CONTAINERS=1`, or if Redis is not installed and a container
     * engine responds.
     */
    redisContainers: boolean;
  }
}

let ownRunDir: string | undefined;

/** Sets the folder of the run in a process to which Vitest does not provide it. */
export function useRunDir(folder: string): void {
  ownRunDir = folder;
}

/** Returns the folder of this test run. */
export function runDir(): string {
  return ownRunDir ?? inject('runDir');
}
