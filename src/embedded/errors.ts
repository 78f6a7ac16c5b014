/** The embedded PostgreSQL cannot be opened. The message tells the user what to do; no stack trace is shown. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError';
}
