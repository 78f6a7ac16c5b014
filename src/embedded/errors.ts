/** The embedded PostgreSQL cannot be opened. The message is for the user and says what to do; no stack trace is shown. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError';
}
