import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { migrate } from '../src/store/schema/migrations.ts';
import { createDatabase, runOn } from './support/database.ts';
import { openFleet } from './support/fleet.ts';

/**
 * Returns the statements from docs/security.md that grant rights to the serving role. The document calls this role
 * `bookmarks`.
 */
function grantsTo(role: string): string {
  const text = readFileSync(new URL('../docs/security.md', import.meta.url), 'utf8');
  const [, sql] = /^```sql\n([\s\S]*?)^```$/m.exec(text)!;
  return sql!.replaceAll('to bookmarks;', `to ${role};`);
}

test('the service works with a role that may only read and write rows', async () => {
  await using database = await createDatabase();
  await migrate({ url: database.url });
  const role = `serving_${database.name}`;
  await runOn(database.url, `create role ${role} login password 'secret'; ${grantsTo(role)}`);
  const url = new URL(database.url);
  Object.assign(url, { username: role, password: 'secret' });
  try {
    await using fleet = await openFleet({ databaseUrl: url.href });
    const { post } = await fleet.start('all', { IMPORT_INLINE_BYTES: 100 });
    const { token, email } = await fleet.user();
    const send = async (path: string, body: object) => {
      const response = await post(path, body, token);
      expect(response, path).toMatchObject({ status: 200 });
      return response.body;
    };
    const { id, tags } = await send('/bookmarks/add', { url: 'https://example.org/', tags: ['one'] });
    await send('/bookmarks/edit', { id, tags: ['one', 'two'] });
    await send('/tags/update', { id: tags[0].id, name: 'first' });
    await send('/tags/delete', { id: tags[0].id });
    await send('/tags/create', { name: 'other' });
    await send('/bookmarks/get', { id });
    await send('/bookmarks/search', { query: 'example', tag: 'two' });
    await send('/bookmarks/search', { site: 'example.org', sort: 'title' });
    await send('/bookmarks/list', {});
    const { bookmarks } = await send('/export', {});
    const many = Array.from({ length: 20 }, () => bookmarks[0]);
    expect(await send('/import', { bookmarks: many, mode: 'replace' })).toMatchObject({ imported: 20 });
    expect((await send('/bookmarks/sync', { cursor: id })).bookmarks).toHaveLength(20);
    await send('/user/profile', {});
    await expect(fleet.sql`create table more ()`).rejects.toMatchObject({ code: '42501' });
    await fleet.sql`select delete_user(${email})`;
    expect(await fleet.sql`select from bookmarks`).toHaveLength(0);
  } finally {
    await runOn(database.url, `drop owned by ${role}; drop role ${role}`);
  }
});
