import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the test run. It is removed at the end of the run. */
    runDir: string;
    /** The url of a Postgres whose user may create databases. No test changes the database in this url. */
    postgresUrl: string;
    /** The name of a migrated database that tests copy. */
    templateDatabase: string;
    /** The url of a Citus cluster's coordinator, if the tests run on one. In that case, every database is sharded. */
    citusUrl: string | undefined;
    /** The name of a migrated database on all nodes of the cluster, which tests copy. */
    citusTemplate: string | undefined;
    /** The Redis that `TEST_REDIS_URL` names. */
    redisUrl: string | undefined;
    /** Whether Redis servers run in containers. They do if the program is not installed. */
    docker: boolean;
  }
}

let ownRunDir: string | undefined;

/** Sets the folder of a run outside of Vitest. */
export function useRunDir(folder: string): void {
  ownRunDir = folder;
}

/** Returns the folder of this test run. */
export function runDir(): string {
  return ownRunDir ?? inject('runDir');
}
