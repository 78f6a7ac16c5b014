import { expect, test } from 'vitest';
import { DatabaseUnavailable, translateError } from '../src/store/driver/errors.ts';

// Tests which errors prove that a failed statement had no effect. What the service tells a client about a failed write
// depends on this proof.

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
  ['an unknown code of a known class', sqlState('57000'), 'cancelled', false],
  ['statement_completion_unknown', sqlState('40003'), 'lost', true],
  ['transaction_timeout', sqlState('25P04'), 'lost', true],
  ['a prepared statement that a pooler lost', sqlState('26000'), 'conflict', false],
])(
  '%s: a statement that was sent may have run, and one that was not sent has not run',
  (_, error, reason, mayHaveRun) => {
    expect(translateError(error, true)).toMatchObject({ reason, mayHaveRun });
    const neverSent = translateError(error, false);
    expect(neverSent).toBeInstanceOf(DatabaseUnavailable);
    expect(neverSent).toMatchObject({ reason: reason === 'lost' ? 'connect' : reason, mayHaveRun: false });
  },
);

test.each(['imports_account', 'tokens_account', 'idempotency_keys_account', 'import_chunks_import'])(
  'a violation of %s means that the user was deleted, so the token is invalid',
  (constraint_name) => {
    const error = Object.assign(sqlState('23503'), { constraint_name });
    expect(translateError(error, true)).toMatchObject({ code: 'INVALID_TOKEN' });
  },
);

test.each([
  'loaded Citus library version differs from installed extension version',
  'loaded Citus library version differs from latest available extension version',
  'cannot execute a distributed query from a query on a shard',
])('while a node of Citus is being upgraded (%s), nothing was done, and a retry may succeed', (message) => {
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
])('if a connection between nodes of Citus ends (%s), it is unknown whether anything was done', (message) => {
  const failure = translateError(Object.assign(sqlState('XX000'), { message }), true);
  expect(failure).toBeInstanceOf(DatabaseUnavailable);
  expect(failure).toMatchObject({ reason: 'lost', code: 'XX000', mayHaveRun: true });
  // The logged message contains neither the statement nor an address.
  expect((failure as Error).message).toBe('database unavailable: lost (XX000)');
});

test.each(['23503', '23505', '22021', '42P01', '42501', '54000', 'XX000', 'P0001'])(
  'an error with the unexpected SQLSTATE %s is passed on unchanged',
  (state) => {
    const error = sqlState(state);
    expect(translateError(error, true)).toBe(error);
  },
);
