import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the test run, removed at its end. */
    runDir: string;
    /** A Postgres whose user may create databases. No test changes the database in the url. */
    postgresUrl: string;
    /** A migrated database that tests copy. */
    templateDatabase: string;
    /** The coordinator of a Citus cluster, if the tests run on one. Then every database is sharded. */
    citusUrl: string | undefined;
    /** A migrated database on all nodes of the cluster that tests copy. */
    citusTemplate: string | undefined;
    /** The Redis that `TEST_REDIS_URL` names. */
    redisUrl: string | undefined;
    /** Whether Redis servers run in containers, because the program is not installed. */
    docker: boolean;
  }
}

let ownRunDir: string | undefined;

/** Sets the folder for runs outside of Vitest. */
export function useRunDir(folder: string): void {
  ownRunDir = folder;
}

/** The folder of this test run. */
export function runDir(): string {
  return ownRunDir ?? inject('runDir');
}
