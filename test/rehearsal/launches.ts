import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesObject } from '../../k8s/check/objects.ts';
import { readEnvironment } from '../../k8s/check/rules/environment.ts';
import { chooseServerAccount, giveFolder } from '../../src/embedded/server-account.ts';
import { makeFolder } from '../support/folders.ts';
import { findFreePort, waitUntilListening } from '../support/ports.ts';
import { provide } from '../support/programs.ts';
import { runDir } from '../support/run.ts';
import { until } from '../support/until.ts';
import { atPlace, type Launch, mountVolumes, type Node, type Template } from './pod.ts';

/** How to start the manifests' containers as local processes. Values that cannot apply on this machine are replaced. */

/**
 * Variables whose values differ from the manifests, because all pods share one machine and no collector of traces runs
 * on it.
 */
const OF_THE_PLACE = { HOST: '127.0.0.1', PORT: '0', OTEL_EXPORTER_OTLP_ENDPOINT: '' };

const LISTEN_LIMIT_MS = 60_000;

/**
 * Returns the folder with the code of an image. Throws for a tag that was never pushed, because a node could not pull
 * that image.
 */
function pull(node: Node, image: string): string {
  const folder = node.images.get(image.split(':').at(-1)!);
  if (folder === undefined) throw new Error(`ErrImagePull: ${image}`);
  return folder;
}

/** Returns the environment variables of one of the service's containers, with this machine's paths. */
export function readContainerEnv(node: Node, template: Template): Record<string, string> {
  const objects: readonly KubernetesObject[] = node.objects();
  const mounts = mountVolumes(objects, template);
  const written = readEnvironment(objects, template.spec.containers[0]);
  const env = Object.entries({ ...written, ...OF_THE_PLACE }).map(([name, text]) => [
    name,
    atPlace(text, mounts),
  ]);
  return {
    ...Object.fromEntries(env),
    DRAIN_SECONDS: String(Math.ceil(Number(written.DRAIN_SECONDS) * node.scale)),
    PATH: process.env.PATH!,
    NODE_COMPILE_CACHE: join(runDir(), 'compiled'),
  };
}

/** Returns how to start Node with the arguments of one of the service's containers. */
export async function launchService(node: Node, template: Template): Promise<Launch> {
  const [container] = template.spec.containers;
  const folder = pull(node, container.image);
  const metricsPort = await findFreePort();
  let output = '';
  return {
    command: process.execPath,
    args: ['src/main.ts', ...container.args],
    env: { ...readContainerEnv(node, template), METRICS_PORT: String(metricsPort) },
    folder,
    listen: async (child) => {
      child.stdout!.on('data', (text: string) => {
        output += text;
      });
      return until(() => /"origin":"([^"]+)".*"msg":"listening"/.exec(output)?.[1], LISTEN_LIMIT_MS);
    },
    isReady: async (origin) => {
      const { path } = container.readinessProbe.httpGet;
      return fetch(`${origin}${path}`).then(
        ({ ok }) => ok,
        () => false,
      );
    },
  };
}

/** Returns how to start PgBouncer with the configuration and the users that the pod mounts. */
export async function launchPooler(node: Node, template: Template): Promise<Launch> {
  const [container] = template.spec.containers;
  const mounts = mountVolumes(node.objects(), template);
  const port = await findFreePort();
  const file = atPlace(container.command.at(-1), mounts);
  if (!existsSync(file)) throw new Error(`pgbouncer has no ${container.command.at(-1)}`);
  const ini = atPlace(readFileSync(file, 'utf8'), mounts)
    .replace(/^listen_addr = .*$/m, 'listen_addr = 127.0.0.1')
    .replace(/^listen_port = .*$/m, `listen_port = ${port}`);
  writeFileSync(file, ini);
  const folder = makeFolder('pooler', runDir());
  const account = chooseServerAccount(join(folder, 'none'));
  for (const mounted of mounts.values()) giveFolder(account, mounted);
  return {
    command: await provide('pgbouncer'),
    args: [file],
    env: {},
    folder: '/',
    as: account,
    listen: async () => {
      await waitUntilListening(port, LISTEN_LIMIT_MS);
      return `http://127.0.0.1:${port}`;
    },
    isReady: async () => true,
  };
}
