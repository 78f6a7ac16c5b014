import { expect, test } from 'vitest';
import { DatabaseUnavailable, translateError } from '../src/store/errors.ts';

// Whether a failed statement may have taken effect. Only this decides what a client learns about a failed write.

const withCode = (code: string) => Object.assign(new Error('a fault'), { code });
const sqlState = (code: string) => Object.assign(withCode(code), { name: 'PostgresError' });

test.each([
  ['CONNECTION_CLOSED', withCode('CONNECTION_CLOSED'), 'lost', true],
  ['ECONNRESET', withCode('ECONNRESET'), 'lost', true],
  ['no response in time', withCode('ANSWER_TIMEOUT'), 'deadline', true],
  ['the pool was closed', withCode('CONNECTION_DESTROYED'), 'closed', true],
  ['admin_shutdown', sqlState('57P01'), 'lost', true],
  ['query_canceled', sqlState('57014'), 'cancelled', false],
  ['lock_not_available', sqlState('55P03'), 'cancelled', false],
  ['deadlock_detected', sqlState('40P01'), 'conflict', false],
  ['disk_full', sqlState('53100'), 'disk-full', false],
  ['io_error', sqlState('58030'), 'resources', false],
  ['a class of which no code was foreseen', sqlState('57000'), 'cancelled', false],
  ['statement_completion_unknown', sqlState('40003'), 'lost', true],
  ['transaction_timeout', sqlState('25P04'), 'lost', true],
  ['a prepared statement that a pooler has left behind', sqlState('26000'), 'conflict', false],
])('%s: a statement that was sent may have run, one that was not has not', (_, error, reason, mayHaveRun) => {
  expect(translateError(error, true)).toMatchObject({ reason, mayHaveRun });
  const neverSent = translateError(error, false);
  expect(neverSent).toBeInstanceOf(DatabaseUnavailable);
  expect(neverSent).toMatchObject({ reason: reason === 'lost' ? 'connect' : reason, mayHaveRun: false });
});

test.each(['imports_account', 'tokens_account', 'idempotency_keys_account', 'import_chunks_import'])(
  'a row that refers by %s to a user who is gone: the token is not valid any more',
  (constraint_name) => {
    const error = Object.assign(sqlState('23503'), { constraint_name });
    expect(translateError(error, true)).toMatchObject({ code: 'INVALID_TOKEN' });
  },
);

test.each([
  'loaded Citus library version differs from installed extension version',
  'loaded Citus library version differs from latest available extension version',
  'cannot execute a distributed query from a query on a shard',
])('a node of Citus is being upgraded (%s): nothing was done, and a later try may succeed', (message) => {
  const refused = Object.assign(sqlState('XX000'), { message });
  const failure = translateError(refused, true);
  expect(failure).toBeInstanceOf(DatabaseUnavailable);
  expect(failure).toMatchObject({ reason: 'resources', code: 'XX000', mayHaveRun: false, cause: refused });
});

test.each([
  'failure on connection marked as essential: worker-1:5432',
  "failed to prepare transaction 'citus_0_1_2_3' on host worker-1:5432",
  'execution cannot recover from multiple connection failures. Last node failed worker-1:5432',
  'could not commit transaction for shard 102040 on at least one active node',
  'postmaster was shut down, exiting',
  'server closed the connection unexpectedly',
  'SSL connection has been closed unexpectedly',
  'no connection to the server',
  'connection not open',
  'could not receive data from server: Connection reset by peer',
  'could not send data to server: Broken pipe',
])('a connection between nodes of Citus ended (%s): whether anything was done is open', (message) => {
  const failure = translateError(Object.assign(sqlState('XX000'), { message }), true);
  expect(failure).toBeInstanceOf(DatabaseUnavailable);
  expect(failure).toMatchObject({ reason: 'lost', code: 'XX000', mayHaveRun: true });
  // The log contains neither the statement nor an address.
  expect((failure as Error).message).toBe('database unavailable: lost (XX000)');
});

test.each(['23503', '23505', '22021', '42P01', '42501', '54000', 'XX000', 'P0001'])(
  '%s, which nobody foresaw, stays as it is',
  (state) => {
    const error = sqlState(state);
    expect(translateError(error, true)).toBe(error);
  },
);
