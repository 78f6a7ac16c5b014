/** A Postgres for one test, which may kill or freeze it. Its url stays the same over restarts. */
export interface PostgresServer extends AsyncDisposable {
  /** The url of its empty database `bookmarks`. */
  readonly url: string;
  readonly port: number;
  /** Sends the signal to the postmaster. Resolves when `restart` may follow. */
  crash(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void>;
  /** Sends SIGKILL to the postmaster, and resolves when its backends have ended by themselves. */
  kill(): Promise<void>;
  /** Sends SIGINT, so that the server closes its connections and writes all data to disk. */
  shutDown(): Promise<void>;
  /**
   * Starts the server again on the same port and data after `kill` or `shutDown`. If it still runs, shuts it down
   * first.
   */
  restart(): Promise<void>;
  /** Sends SIGSTOP to the postmaster and all its backends. */
  freeze(): Promise<void>;
  /** Sends SIGCONT to the postmaster and all its backends. */
  thaw(): Promise<void>;
  /** Ends the server, even if it is frozen, and removes its data. */
  stop(): Promise<void>;
}
