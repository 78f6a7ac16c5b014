import { expect, onTestFinished, test } from 'vitest';
import { findUrlFault } from '../src/store/driver/url.ts';
import { migrate } from '../src/store/schema/migrations.ts';
import { createDatabase } from './support/database.ts';
import { catchUnavailable, one, openPool, selectOne } from './support/pool.ts';
import { findFreePort } from './support/ports.ts';
import { startProxy } from './support/proxy.ts';
import { startService } from './support/service.ts';
import { silentLog } from './support/silent-log.ts';

// Opens proxies to one database. A url that names all of the proxies has several hosts, and every host leads to the
// same rows.

async function openProxies(count: number) {
  const database = await createDatabase();
  onTestFinished(database.drop);
  const proxies = await Promise.all(Array.from({ length: count }, () => startProxy(database.url)));
  onTestFinished(async () => {
    for (const proxy of proxies) await proxy.close();
  });
  return { database, proxies };
}

/** Returns the url with its host replaced by these ports of this machine, in this order. */
function throughPorts(url: string, ports: readonly number[], query = ''): string {
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',');
  return url.replace(new URL(url).host, hosts) + query;
}

test('a replica whose first host is down serves through the next one', async () => {
  const { database, proxies } = await openProxies(1);
  const url = throughPorts(database.url, [await findFreePort(), proxies[0]!.port]);
  expect(await migrate({ url, log: silentLog })).toEqual([]);
  await using service = await startService({ databasePoolSize: 3 }, { database: { ...database, url } });
  const user = await service.user();
  expect((await user.post('/bookmarks/add', { url: 'https://example.org/' })).status).toBe(200);
  expect((await fetch(`${service.origin}/readyz`)).status).toBe(200);
});

test('if a host goes down, its connections and the reads in flight move to the other one', async () => {
  const { database, proxies } = await openProxies(2);
  const [first, second] = proxies as [(typeof proxies)[0], (typeof proxies)[0]];
  const pool = await openPool({ url: throughPorts(database.url, [first.port, second.port]), max: 1 });
  expect([first.open, second.open]).toEqual([1, 0]);
  const reading = pool.read((sql) => sql`select pg_sleep(0.5), 1 as one`);
  first.reception = 'close';
  first.cut('reset');
  expect(await reading).toMatchObject(one);
  expect(second.open).toBe(1);
  second.reception = 'close';
  second.cut('reset');
  await catchUnavailable(pool.write((sql) => sql`select 1 as one`));
  second.reception = 'pass';
  await expect.poll(() => selectOne(pool).catch(() => [])).toEqual(one);
});

test('with load_balance_hosts=random, each pool begins at any host; without it, and to migrate, at the first one', async () => {
  const { database, proxies } = await openProxies(3);
  const ports = proxies.map(({ port }) => port);
  const openMany = async (query: string) => {
    const before = proxies.map(({ accepted }) => accepted);
    for (let n = 0; n < 24; n += 1) await openPool({ url: throughPorts(database.url, ports, query), max: 1 });
    return proxies.map(({ accepted }, n) => accepted - before[n]!);
  };
  expect(await openMany('')).toEqual([24, 0, 0]);
  expect(await openMany('?load_balance_hosts=disable')).toEqual([24, 0, 0]);
  // Each pool picks a host at random. The check expects that 24 pools do not all pick the same host.
  const spread = await openMany('?load_balance_hosts=random');
  expect(spread.filter((count) => count > 0).length).toBeGreaterThan(1);
  const accepted = () => proxies[0]!.accepted;
  for (let n = 0; n < 5; n += 1) {
    const before = accepted();
    await migrate({ url: throughPorts(database.url, ports, '?load_balance_hosts=random'), log: silentLog });
    expect(accepted()).toBe(before + 1);
  }
});

test('a value of load_balance_hosts that libpq does not know is refused, with a message that names it', () => {
  const fault = findUrlFault('postgres://a,b/bookmarks?load_balance_hosts=round-robin');
  expect(fault).toBe('expected load_balance_hosts to be disable or random');
  expect(findUrlFault('postgres://a:1,b:2/bookmarks?load_balance_hosts=random')).toBeUndefined();
});
