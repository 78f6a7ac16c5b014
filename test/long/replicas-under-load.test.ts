import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { openFleet } from '../support/fleet.ts';
import { startHaproxy } from '../support/haproxy.ts';
import { findFaults } from '../support/invariants.ts';
import { findFreePort } from '../support/ports.ts';
import { post } from '../support/post.ts';
import type { Replica } from '../support/replica.ts';
import type { ApiResponse } from '../support/responses.ts';
import { until } from '../support/until.ts';
import type { Principal } from '../support/users.ts';

// Tests real processes with thousands of clients, or with clients that never pause.

test('10,000 clients that disconnect leave no polls, connections or memory behind', async () => {
  await using fleet = await openFleet({ env: { SYNC_WAIT_SECONDS: 30 } });
  const replica = await fleet.start('api', {
    NODE_OPTIONS: '--expose-gc --import=./test/support/report-heap.ts',
  });
  const users: Principal[] = [];
  while (users.length < 625)
    users.push(...(await Promise.all(Array.from({ length: 25 }, () => fleet.user()))));
  const pollAndDisconnect = async (each: number) => {
    const sockets = await sendPolls(replica.origin, users, each);
    await replica.untilHeld(each * users.length);
    for (const socket of sockets) socket.resetAndDestroy();
    await replica.untilHeld(0);
    return measureHeap(replica);
  };
  const before = await replica.metrics();
  // The first crowd of clients fills caches, which is not a leak. So the test compares later crowds with each other.
  const warm = await pollAndDisconnect(16);
  const second = await pollAndDisconnect(16);
  // A leak of one closure per poll would make the heap grow by more than 1 MB with every crowd. A single growth of more
  // than 1 MB may have another cause, so in that case the test sends one more crowd.
  const growth = second - warm < 1_000_000 ? second - warm : (await pollAndDisconnect(16)) - second;
  expect(growth).toBeLessThan(1_000_000);
  const after = await replica.metrics();
  for (const name of ['process_open_fds', 'nodejs_active_handles_total', 'nodejs_active_requests_total']) {
    expect(after.get(name)! - before.get(name)!, name).toBeLessThan(50);
  }
});

async function sendPolls(origin: string, users: Principal[], each: number): Promise<Socket[]> {
  const { hostname, port } = new URL(origin);
  const body = '{"wait":true}';
  const sockets: Socket[] = [];
  for (const { token } of users) {
    const request =
      `POST /api/v1/bookmarks/sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
      `Authorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const opened = Array.from({ length: each }, () => connect(Number(port), hostname));
    await Promise.all(opened.map((socket) => once(socket, 'connect')));
    for (const socket of opened) socket.write(request);
    sockets.push(...opened);
  }
  return sockets;
}

/** Returns how many bytes of the replica's heap are in use after a garbage collection. */
async function measureHeap(replica: Replica): Promise<number> {
  const known = replica.log.length;
  replica.signal('SIGUSR2');
  const line = await until(() => replica.log.slice(known).find(({ msg }) => msg === 'heap'));
  return line.usedBytes as number;
}

test('three replicas behind a balancer restart in turn under load, and no request fails', async () => {
  await using fleet = await openFleet({ env: { DRAIN_SECONDS: 1, SYNC_WAIT_SECONDS: 1 } });
  const ports = [await findFreePort(), await findFreePort(), await findFreePort()];
  const startAt = (port: number) => fleet.start('all', { PORT: port });
  const replicas = await Promise.all(ports.map(startAt));
  await using balancer = await startHaproxy(ports);
  const users = await Promise.all(Array.from({ length: 4 }, () => fleet.user({ premium: true })));
  await until(async () => (await fetch(`${balancer.origin}/readyz`)).ok);

  const ask = (user: Principal, path: string, body: unknown) =>
    post(balancer.origin, path, body, { token: user.token });
  const failures: string[] = [];
  let isDone = false;
  const added = new Map(users.map((user) => [user, [] as string[]]));
  const repeat = async (step: (n: number) => Promise<ApiResponse>) => {
    for (let n = 0; !isDone; n += 1) {
      await step(n).then(
        ({ status, text }) => status === 200 || failures.push(`${status} ${text}`),
        (error: unknown) => failures.push(String(error)),
      );
    }
  };
  const clients = users.flatMap((user, name) => [
    repeat(async (n) => {
      const response = await ask(user, '/bookmarks/add', { url: `http://user-${name}/${n}` });
      if (response.status === 200) added.get(user)!.push(response.body.url);
      return response;
    }),
    repeat(() => ask(user, '/bookmarks/search', { query: 'user' })),
    repeat((n) => ask(user, '/bookmarks/sync', { cursor: n % 2 ? Number.MAX_SAFE_INTEGER : 0, wait: true })),
    repeat((n) =>
      ask(user, '/import', { bookmarks: [{ url: 'http://a/' }, { url: `http://import-${name}/${n}` }] }),
    ),
  ]);
  for (const [index, port] of ports.entries()) {
    expect(await replicas[index]!.stop()).toBe(0);
    const heir = await startAt(port);
    replicas[index] = heir;
    await until(() => heir.log.some(({ route }) => String(route).startsWith('/api/')));
  }
  isDone = true;
  await Promise.all(clients);
  expect(failures).toEqual([]);
  for (const [user, urls] of added) {
    expect((await fleet.urls(user)).filter((url) => url.startsWith('http://user-'))).toEqual(urls);
  }
  expect(await findFaults(fleet.databaseUrl)).toEqual([]);
});
