import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Connection } from '../src/flow/connections.ts';
import { openFleet } from './support/fleet.ts';

/** Returns the head of a request, and the first bytes of its body. */
const describeRequest = (path: string, token: string, length: number, body: string): string =>
  `POST /api/v1${path} HTTP/1.1\r\nhost: service\r\ncontent-type: application/json\r\n` +
  `authorization: Bearer ${token}\r\ncontent-length: ${length}\r\n\r\n${body}`;

test('an export whose client disconnects before the first byte is not logged as a fault of the service', async () => {
  await using fleet = await openFleet();
  const { token } = await fleet.user();
  const replica = await fleet.start('api');
  const lock = await fleet.hold('lock table bookmarks in access exclusive mode');
  const socket = connect(Number(new URL(replica.origin).port), '127.0.0.1');
  socket.write(describeRequest('/export', token, 2, '{}'));
  await fleet.untilBlocked('exportedAt');
  socket.resetAndDestroy();
  // When the replica responds to a later request, it has already noticed the disconnect.
  await replica.readiness();
  await lock.release();
  await replica.untilLogged('the client disconnected');
  expect(replica.log.filter(({ level }) => level > 30)).toEqual([]);
});

test('an upload whose client disconnects midway is not logged as a fault of the service', async () => {
  await using fleet = await openFleet();
  const { token } = await fleet.user();
  const replica = await fleet.start('api', { IMPORT_INLINE_BYTES: 10 });
  for (const sent of ['{', '{"bookmarks":[{"url":']) {
    const socket = connect(Number(new URL(replica.origin).port), '127.0.0.1');
    socket.write(describeRequest('/import', token, 1_000, sent));
    await once(socket, 'connect');
    // When the service responds to a later request, it has already received the first bytes of this upload.
    await replica.post('/tags/list', {}, token);
    socket.resetAndDestroy();
  }
  await replica.stop();
  // The service may look up the token after it has closed the database. In that case, it logs a warning.
  expect(replica.log.filter(({ level }) => level >= 50)).toEqual([]);
});

test('a connection is closed if its client reads less than 16 KiB within the stall time', () => {
  // From a real socket, the kernel takes bytes in chunks that are too large for this test. So the socket is a fake.
  const handle = { bytesWritten: 100_000, writeQueueSize: 100_000 };
  let isCut = false;
  const socket = {
    writableLength: 1,
    _handle: handle,
    resetAndDestroy: () => {
      isCut = true;
    },
  };
  const connection = new Connection(socket as unknown as Socket);
  /** Lets the client read these bytes, then checks the connection at `nowMs`. Returns whether the check closed it. */
  const checkAfterRead = (nowMs: number, bytes: number) => {
    handle.writeQueueSize -= bytes;
    connection.check(nowMs, 1_000);
    return isCut;
  };
  expect(checkAfterRead(0, 0)).toBe(false);
  expect(checkAfterRead(999, 16_384)).toBe(false);
  expect(checkAfterRead(1_998, 16_383)).toBe(false);
  expect(checkAfterRead(1_999, 0)).toBe(true);
});
