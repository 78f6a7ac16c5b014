/**
 * Returns whether the driver has written a statement to a connection. If it has, postgres.js 3.4.9 has set `state` to
 * that connection. The driver documents no way to ask. Without it, a call whose deadline passed could not tell a
 * statement that never runs from one that may have run.
 */
export const wasSent = (statement: object | undefined): boolean =>
  statement !== undefined && !('state' in statement && statement.state === null);
