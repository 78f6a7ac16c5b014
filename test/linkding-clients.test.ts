import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CLIENTS, type LinkdingClient } from './linkding/clients.ts';
import { useService } from './support/service.ts';

// Sends the requests of programs for linkding, and reads the responses as these programs do. The results are the table
// in docs/linkding.md.

const service = useService({ compatLinkding: true });

/** Sends all requests of a client. Returns the purposes of those that succeed, and of those that fail. */
async function tryClient(client: LinkdingClient): Promise<{ works: string[]; fails: string[] }> {
  const user = await service.user();
  const add = async (url: string, tags: string[]) =>
    (await user.post('/bookmarks/add', { url, tags, title: 'Title', comment: 'Text\n\n--- notes ---\nN' }))
      .body;
  await add('https://other.example/', ['shared', 'archived']);
  await add('https://example.org/', []);
  const saved = await add('https://saved.example/', ['one', 'to do', 'toread']);
  const tagId = saved.tags[0].id;
  const isRead = async ({
    method,
    path,
    headers,
    body,
    status,
    type,
  }: LinkdingClient['requests'][number]) => {
    const base = client.dropsPath ? service.origin : `${service.origin}/compat/linkding`;
    const address = base + path.replace('{id}', saved.id).replace('{tag}', tagId);
    const authorization = `${client.scheme ?? 'Token'} ${user.token}`;
    const response = await fetch(address, {
      method,
      headers: { ...headers, authorization },
      body: body ?? null,
    });
    const answer = await response.text();
    return response.status === status && (type === undefined || type.safeParse(JSON.parse(answer)).success);
  };
  const works = new Set<string>();
  const fails = new Set<string>();
  for (const request of client.requests) {
    const { purpose } = request;
    ((await isRead(request)) ? works : fails).add(purpose);
  }
  for (const purpose of fails) works.delete(purpose);
  return { works: [...works], fails: [...fails] };
}

/** Returns the client's row of the table in docs/linkding.md. */
async function makeRow(client: LinkdingClient): Promise<string> {
  const { name, repository, commit, limitation = '' } = client;
  const { works, fails } = await tryClient(client);
  const cells = [
    `[${name}](https://github.com/${repository}) ${commit}`,
    works.join(', ') || '–',
    fails.join(', ') || '–',
    limitation,
  ];
  return `| ${cells.join(' | ')} |`.replace('|  |', '| |');
}

const documented = readFileSync(new URL('../docs/linkding.md', import.meta.url), 'utf8').split('\n');

test.each(CLIENTS.map((client) => ({ name: client.name, client })))(
  'the requests of $name succeed or fail as docs/linkding.md says',
  async ({ client }) => {
    const row = await makeRow(client);
    expect(documented.find((line) => line.startsWith(`| [${client.name}](`))).toBe(row);
  },
);

test('every failure has a reason, and docs/linkding.md lists no other clients', async () => {
  expect(CLIENTS.length).toBeGreaterThanOrEqual(20);
  const rows = documented.filter((line) => line.startsWith('| ['));
  expect(rows.map((row) => /^\| \[([^\]]*)\]/.exec(row)?.[1])).toEqual(CLIENTS.map(({ name }) => name));
  for (const row of rows) {
    const [, , , fails, reason] = row.split('|').map((cell) => cell.trim());
    expect([row, fails === '–']).toEqual([row, reason === '']);
  }
});
