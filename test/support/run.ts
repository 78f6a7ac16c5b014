import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder that lives as long as the test run. */
    runDir: string;
    /** A Postgres whose user may create databases; no test changes the database it names. */
    postgresUrl: string;
    /** A migrated database, to be copied. */
    templateDatabase: string;
    /** The Redis that `TEST_REDIS_URL` names. */
    redisUrl: string | undefined;
    /** Redis servers are started in containers, for want of a program. */
    docker: boolean;
  }
}

let ownRunDir: string | undefined;

/** Names the folder where Vitest does not run, and so does not provide one. */
export function useRunDir(folder: string): void {
  ownRunDir = folder;
}

/** The folder of this test run. */
export function runDir(): string {
  return ownRunDir ?? inject('runDir');
}
