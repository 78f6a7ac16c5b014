import { expect, test } from 'vitest';
import { findShard, hashId } from '../src/store/driver/placement.ts';
import { urlOfNode } from '../src/store/driver/url.ts';
import { useService } from './support/service.ts';

const service = useService();

test('the computed hash of a user id equals that of Postgres', async () => {
  const powers = Array.from({ length: 53 }, (_, bits) => 2 ** bits);
  const ids = [0, ...powers.flatMap((power) => [power - 1, power, power + 1]), Number.MAX_SAFE_INTEGER - 1];
  const rows = await service.context.database.read(
    (sql) => sql<{ hash: number }[]>`
      select hashint8(id) as hash from unnest(${ids}::bigint[]) with ordinality as given (id, n) order by n`,
  );
  expect(ids.map(hashId)).toEqual(rows.map(({ hash }) => hash));
});

test('a user belongs to the last shard that starts at or before the hash', () => {
  const least = -(2 ** 31);
  const shards = [{ min: least }, { min: hashId(7) }, { min: 2 ** 31 - 1 }];
  expect(findShard(shards, 7)).toBe(shards[1]);
  expect(findShard([{ min: least }, { min: hashId(7) + 1 }], 7)).toEqual({ min: least });
  expect(findShard([], 7)).toBeUndefined();
});

test.for([
  ['postgres://u:p%40@any:1/bookmarks?sslmode=require', 'postgres://u:p%40@{}?sslmode=require'],
  ['postgres://any,other:5433/bookmarks', 'postgres://{}'],
  ['postgresql://u@any', 'postgresql://u@{}'],
])('the url of a node keeps everything but the address and the database of %s', ([url, expected]) => {
  const node = { host: 'worker-1', port: 5_432 };
  expect(urlOfNode(url!, 'pgbouncer:6432/{host}', node)).toBe(
    expected!.replace('{}', 'pgbouncer:6432/worker-1'),
  );
  expect(urlOfNode(url!, '{host}:{port}/b', { host: '::1', port: 1 })).toBe(
    expected!.replace('{}', '[::1]:1/b'),
  );
});
