import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the test run, removed at its end. */
    runDir: string;
    /** A Postgres whose user may create databases. No test changes the database that the url names. */
    postgresUrl: string;
    /** A migrated database that tests copy. */
    templateDatabase: string;
    /** The coordinator of a Citus cluster, where the tests run on one: every database is then a sharded one. */
    citusUrl: string | undefined;
    /** A migrated database on all nodes of it that tests copy. */
    citusTemplate: string | undefined;
    /** The Redis that `TEST_REDIS_URL` names. */
    redisUrl: string | undefined;
    /** Whether Redis servers run in containers, because there is no program. */
    docker: boolean;
  }
}

let ownRunDir: string | undefined;

/** Sets the folder where no Vitest provides one. */
export function useRunDir(folder: string): void {
  ownRunDir = folder;
}

/** The folder of this test run. */
export function runDir(): string {
  return ownRunDir ?? inject('runDir');
}
