/** The embedded Postgres cannot be opened; the message tells the user, without a stack trace, what to do about it. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError';
}
