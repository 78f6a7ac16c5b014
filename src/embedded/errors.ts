/** Thrown if the embedded PostgreSQL cannot be opened. The message tells the user what to do. */
export class EmbeddedPostgresError extends Error {
  override name = 'EmbeddedPostgresError';
}
