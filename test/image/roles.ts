import assert from 'node:assert/strict';
import type { Engine } from '../containers/engine.ts';
import { findFreePort } from '../support/ports.ts';
import { post } from '../support/post.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { scrape } from '../support/replica.ts';
import { until } from '../support/until.ts';
import { type Container, startContainer } from './container.ts';
import { usePage } from './page.ts';

/** Starts every role of the image as in a deployment. */

type Env = Record<string, string>;

/** The image in an engine. */
export interface Image {
  engine: Engine;
  name: string;
}

async function finish({ engine, name }: Image, args: readonly string[], env: Env): Promise<string> {
  const { code, output, stdout } = await (await startContainer(engine, name, args, env)).wait();
  assert.equal(code, 0, `${args.join(' ')} ended with ${code}: ${output}`);
  return stdout;
}

/** A container whose role serves until SIGTERM. */
interface Serving {
  origin: string;
  metricsPort: number;
  container: Container;
}

async function serve({ engine, name }: Image, role: readonly string[], env: Env): Promise<Serving> {
  const [port, metricsPort] = [await findFreePort(), await findFreePort()];
  const own = { HOST: '127.0.0.1', PORT: String(port), METRICS_PORT: String(metricsPort) };
  const container = await startContainer(engine, name, role, { ...env, ...own });
  const origin = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(`${origin}/readyz`).then(
      ({ ok }) => ok,
      async () => !(await container.isRunning()),
    );
  await until(isReady);
  if (!(await container.isRunning()))
    throw new Error(`${role.join(' ')} ended: ${(await container.wait()).output}`);
  return { origin, metricsPort, container };
}

async function stop({ container }: Serving): Promise<void> {
  await container.signal('SIGTERM');
  const { code, output } = await container.wait();
  assert.equal(code, 0, output);
  assert.match(output, /"msg":"closed"/);
}

async function ask(origin: string, path: string, token: string, request: object) {
  const { status, text, body } = await post(origin, path, request, { token });
  assert.equal(status, 200, `${path}: ${text}`);
  return body;
}

/** Uses the service as a user does. One import is larger than `IMPORT_INLINE_BYTES`, so that a worker runs it. */
async function useService(origin: string, token: string, n: number): Promise<void> {
  const added = await ask(origin, '/bookmarks/add', token, { url: `https://example.org/${n}` });
  const { bookmarks } = await ask(origin, '/bookmarks/sync', token, { cursor: added.id - 1 });
  assert.deepEqual(
    bookmarks.map(({ id }: { id: number }) => id),
    [added.id],
  );
  const entries = Array.from({ length: 700 }, (_, entry) => ({
    url: `https://example.org/${n}/${entry}`,
    comment: 'x'.repeat(2_000),
  }));
  assert.equal((await ask(origin, '/import', token, { bookmarks: entries })).imported, 700);
}

async function checkBuild({ metricsPort }: Serving, version: string, revision: string): Promise<void> {
  const names = [...(await scrape(metricsPort)).keys()].filter((name) => name.includes('build_info'));
  assert.equal(names.length, 1);
  assert.match(names[0]!, new RegExp(`version="${version}",revision="${revision}"`));
}

/** Runs the roles `migrate` and `admin`, then `api` together with `worker`, then the default role, which is `all`. */
export async function runRoles(image: Image, version: string, revision: string): Promise<string[]> {
  await using postgres = await startPostgres();
  await using redis = await startRedis();
  const env = { DATABASE_URL: postgres.url, REDIS_URL: redis.url };
  assert.match(await finish(image, ['migrate'], env), /"msg":"migration applied"/);
  const admin = async (...args: string[]) => JSON.parse(await finish(image, ['admin', ...args], env));
  await admin('user', 'create', '--email', 'ann@example.org', '--premium');
  const { token } = await admin('token', 'create', '--email', 'ann@example.org', '--scope', 'write');

  const api = await serve(image, ['api'], env);
  const worker = await serve(image, ['worker'], env);
  await useService(api.origin, token, 1);
  await checkBuild(api, version, revision);
  // The engine runs the image's health check every few seconds.
  await until(async () => (await api.container.readHealth()) === 'healthy');
  await Promise.all([stop(api), stop(worker)]);

  const all = await serve(image, [], env);
  await useService(all.origin, token, 2);
  const { code } = await admin('invite', 'create', '--email', 'bob@example.org');
  await usePage(all.origin, code);
  await stop(all);
  return ['migrate', 'admin', 'api', 'worker', 'all, with the page in a browser'];
}
