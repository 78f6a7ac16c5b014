import assert from 'node:assert/strict';
import { copyFileSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BookmarkClient } from '../../src/client/index.ts';
import { openRunFolder } from '../chaos/run-folder.ts';
import { copyContext } from '../image/build.ts';
import { findFreePort } from '../support/ports.ts';
import { sendSignal } from '../support/processes.ts';
import { provide } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { needEngine, startEngine } from './engine.ts';
import { provideStandIns } from './stand-ins.ts';

/**
 * `npm run test:compose` does what the README says about compose.yaml: it starts the service in containers, creates an
 * invite, sends requests through the proxy, kills a replica meanwhile, and stops everything. It prints a transcript. It
 * must run as root on Debian.
 */

const PROJECT = resolve(import.meta.dirname, '../..');

/** Returns the README's commands for compose.yaml, without `docker compose`. */
function readCommands(): { up: string[]; invite: string[] } {
  const text = readFileSync(join(PROJECT, 'README.md'), 'utf8');
  const [up, invite] = [...text.matchAll(/`docker compose (.+?)`/g)].map(([, command]) =>
    command!.split(' '),
  );
  assert.deepEqual([up?.[0], invite?.[0]], ['up', 'run']);
  return { up: up!, invite: invite! };
}

/** Makes a folder with everything that compose.yaml needs. */
function copyProject(): string {
  const folder = copyContext();
  for (const name of ['compose.yaml', 'compose.haproxy.cfg'])
    copyFileSync(join(PROJECT, name), join(folder, name));
  return folder;
}

await needEngine(async () => {
  using _folder = openRunFolder();
  await using engine = await startEngine();
  await provideStandIns(engine, console.log);
  const program = await provide('dockerCompose');
  const cwd = copyProject();
  const port = await findFreePort();
  const compose = async (...args: string[]) => {
    console.log(`$ docker-compose ${args.join(' ')}`);
    const options = { cwd, env: { BOOKMARKS_PORT: String(port), COMPOSE_PROJECT_NAME: 'bookmarks' } };
    const output = await engine.run(program, args, options);
    // The steps of the image's build would hide the rest.
    console.log(output.replace(/^(Building migrate)[\s\S]*(Successfully tagged)/m, '$1 …\n$2'));
    return output;
  };
  const listReplicas = async () =>
    (await engine.docker('ps', '--quiet', '--filter=label=com.docker.compose.service=api')).split('\n');
  const inspect = (container: string, field: string) =>
    engine.docker('inspect', `--format={{.${field}}}`, container);
  const commands = readCommands();
  const origin = `http://127.0.0.1:${port}`;

  await compose(...commands.up, '--detach');
  const isReady = () =>
    fetch(`${origin}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady);
  const replicas = await listReplicas();
  assert.equal(replicas.length, 2);

  // On a busy machine, the first connection of a command may take longer than its deadline.
  const invited = await until(() => compose(...commands.invite).catch(() => undefined));
  const { code } = JSON.parse(invited.split('\n').findLast((line) => line.startsWith('{'))!);
  const baseUrl = `${origin}/api/v1`;
  const response = await fetch(`${baseUrl}/auth/invite`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  assert.equal(response.status, 200);
  const { token } = (await response.json()) as { token: string };
  const client = new BookmarkClient({ baseUrl, token });
  const first = await client.addBookmark({ url: 'https://example.org/' });
  console.log(`added through the proxy: ${first.url}`);

  // A follower waits at one of the replicas, and adds go through both.
  const followed: string[] = [];
  const following = (async () => {
    for await (const { bookmarks } of client.sync({ cursor: first.id })) {
      followed.push(...bookmarks.map(({ url }) => url));
      if (followed.length >= 40) return;
    }
  })();
  const urls = Array.from({ length: 40 }, (_, n) => `https://example.org/${n}`);
  const [killed] = replicas;
  const pid = Number(await inspect(killed!, 'State.Pid'));
  for (const [n, url] of urls.entries()) {
    if (n === 10) {
      console.log(`$ kill -KILL ${pid}   # the first process of one replica`);
      assert.ok(sendSignal(pid, 'SIGKILL'));
    }
    await client.addBookmark({ url });
  }
  await following;
  assert.deepEqual(followed, urls);
  console.log('40 more were added, and followed, while that replica was away');
  await until(async () => {
    const state = JSON.parse(await engine.docker('inspect', '--format={{json .State}}', killed!));
    return state.Running && state.Pid !== pid && state.Health.Status === 'healthy';
  });
  console.log(`the engine restarted the replica: ${await inspect(killed!, 'RestartCount')} restart, healthy`);
  await compose('ps');

  await compose('down', '--volumes');
  assert.equal(await engine.docker('ps', '--all', '--quiet'), '');
});
