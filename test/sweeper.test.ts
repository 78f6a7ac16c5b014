import { expect, test } from 'vitest';
import { deleteLeftovers } from '../src/process/sweeper.ts';
import { runOn } from './support/database.ts';
import { useService } from './support/service.ts';

// What has run out goes, however much of it there is, and nothing else.

const service = useService();

test('a sweep deletes every token, invite and idempotency key that has run out, and none that has not', async () => {
  const { url } = service.database;
  const user = await service.user();
  await service.invite('live@example.org');
  const headers = { 'idempotency-key': 'live' };
  await user.post('/bookmarks/add', { url: 'http://a' }, { headers });
  await runOn(
    url,
    `insert into tokens (user_id, token_hash, kind, scope, expires_at)
    select ${user.id}, sha256(n::text::bytea), 'api', 'read', now() - interval '1 second' from generate_series(1, 2500) n;
    insert into invites (code, email, email_key, expires_at)
    select lpad(n::text, 8, '0'), 'a', 'a', now() - interval '1 second' from generate_series(1, 2500) n;
    insert into idempotency_keys (user_id, key, request_hash, answer, created_at)
    select ${user.id}, n, '', '{}', now() - interval '25 hours' from generate_series(1, 2500) n`,
  );
  await deleteLeftovers(service.context);
  const [left] = await runOn<object>(
    url,
    `select (select count(*) from tokens) as tokens, (select count(*) from invites) as invites,
      (select count(*) from idempotency_keys) as keys`,
  );
  expect(left).toEqual({ tokens: '1', invites: '1', keys: '1' });
  expect((await user.post('/user/profile')).status).toBe(200);
});
