import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../../k8s/check/objects.ts';
import { readQuantity } from '../../k8s/check/quantity.ts';
import { readSecret } from '../../k8s/check/rules/environment.ts';
import { type Container, find } from '../../k8s/check/rules/rule.ts';
import { makeFolder } from '../support/folders.ts';
import { noteProcess } from '../support/processes.ts';
import { runDir } from '../support/run.ts';
import type { Images } from './releases.ts';

/**
 * Runs a pod as a node does. The pod's template determines the files, the process, the probes, preStop and the grace
 * period.
 */

/** What a node gives to every pod. */
export interface Node {
  readonly images: Images;
  /** Returns the current objects of the cluster. */
  objects(): readonly KubernetesObject[];
  /** The factor by which the manifests' waits are multiplied. */
  readonly scale: number;
}

/** How to start a container on this machine. */
export interface Launch {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  folder: string;
  /** The user and group with which the program runs, if it refuses to run as root. */
  as?: { uid?: number; gid?: number };
  /** Resolves with the address when the process listens. Rejects if the process ends before that. */
  listen(child: ChildProcess): Promise<string>;
  /** Returns whether the readiness probe succeeds. */
  isReady(origin: string): Promise<boolean>;
}

/** How a pod ended. */
export interface PodEnd {
  pod: string;
  /** The exit code or signal of the process. */
  exit: number | NodeJS.Signals;
  /** Whether the process was killed because the pod's grace period was over. */
  isKilled: boolean;
  /** The process's peak memory and its limit. The peak is 0 if the system does not report it. */
  peakBytes: number;
  limitBytes: number;
}

// biome-ignore lint/suspicious/noExplicitAny: the manifests' check validates every template against its schema
export type Template = any;

/**
 * Writes the files that a container's volumes mount. Returns a map from the path in the container to the path on this
 * machine.
 */
export function mountVolumes(objects: readonly KubernetesObject[], template: Template): Map<string, string> {
  const folders = new Map<string, string>();
  const root = makeFolder('volumes', runDir());
  for (const { name, mountPath } of template.spec.containers[0].volumeMounts ?? []) {
    const volume = template.spec.volumes.find((candidate: { name: string }) => candidate.name === name);
    const folder = join(root, name);
    mkdirSync(folder);
    for (const [file, text] of Object.entries(filesOf(objects, volume)))
      writeFileSync(join(folder, file), text);
    folders.set(mountPath, folder);
  }
  return folders;
}

// biome-ignore lint/suspicious/noExplicitAny: the manifests' check validates every volume against its schema
function filesOf(objects: readonly KubernetesObject[], { configMap, secret }: any): Record<string, string> {
  const name = configMap?.name ?? secret.secretName;
  const files = configMap ? find(objects, 'ConfigMap', name)?.data : readSecret(objects, name);
  if (files === undefined) throw new Error(`there is no ${configMap ? 'ConfigMap' : 'Secret'} ${name}`);
  const { items, optional = false }: { items?: { key: string; path: string }[]; optional?: boolean } =
    configMap ?? secret;
  if (!items) return files;
  const missing = items.find(({ key }) => files[key] === undefined);
  if (missing && !optional) throw new Error(`${name} has no key ${missing.key}`);
  return Object.fromEntries(
    items.flatMap(({ key, path }) => (files[key] === undefined ? [] : [[path, files[key]]])),
  );
}

/** Replaces the container's paths in a text with the paths on this machine. */
export function atPlace(text: string, mounts: ReadonlyMap<string, string>): string {
  let placed = text;
  for (const [path, folder] of mounts) placed = placed.replaceAll(path, folder);
  return placed;
}

/** A running pod of a Deployment. */
export class Pod {
  readonly name: string;
  readonly template: Template;
  origin = '';
  /** Whether the pod has been ready for as long as its Deployment requires. */
  isAvailable = false;
  /** Whether the pod's Service sends requests to it. */
  isEndpoint = false;
  isEnding = false;
  #peakBytes = 0;
  /** All output of the pod's processes. */
  log = '';
  #child: ChildProcess | undefined;
  readonly #node: Node;
  readonly #describe: () => Promise<Launch>;
  #launch: Launch | undefined;

  constructor(name: string, template: Template, node: Node, describe: () => Promise<Launch>) {
    this.name = name;
    this.template = template;
    this.#node = node;
    this.#describe = describe;
  }

  get #container(): Container {
    return this.template.spec.containers[0];
  }

  /** Starts the process. Resolves when its readiness probe succeeds, or when it has ended. */
  async start(): Promise<boolean> {
    const launch = await this.#describe().catch((error: Error) => this.#note(error.message));
    if (launch === undefined || this.isEnding) return false;
    this.#launch = launch;
    const { command, args, env, folder, as } = launch;
    const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], ...as });
    this.#child = child;
    noteProcess(runDir(), child.pid!);
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.log += text;
      });
    const ended = once(child, 'exit').then(() => undefined);
    const origin = await Promise.race([launch.listen(child).catch(() => undefined), ended]);
    if (origin === undefined) return false;
    this.origin = origin;
    const { periodSeconds } = this.#container.readinessProbe;
    while (this.isRunning && !(await launch.isReady(origin)))
      await sleep(periodSeconds * this.#node.scale * 1_000);
    return this.isRunning;
  }

  #note(text: string): undefined {
    this.log += `${text}\n`;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** Returns the environment of the pod's container. */
  get env(): Record<string, string> {
    return this.#launch!.env;
  }

  get folder(): string {
    return this.#launch!.folder;
  }

  /** Runs preStop and sends SIGTERM. Sends SIGKILL if the process still runs after the grace period. */
  async end(): Promise<PodEnd> {
    this.isEnding = true;
    const child = this.#child;
    if (child === undefined) return { pod: this.name, exit: 0, isKilled: false, peakBytes: 0, limitBytes: 0 };
    const ended = this.isRunning ? once(child, 'exit') : undefined;
    const preStopSeconds = await this.#runPreStop();
    const peakBytes = readPeakBytes(this.pid) || this.#peakBytes;
    if (this.isRunning) child.kill('SIGTERM');
    let isKilled = false;
    const kill = () => {
      isKilled = true;
      child.kill('SIGKILL');
    };
    // The time that the process itself may take to end is not scaled.
    const graceSeconds = this.template.spec.terminationGracePeriodSeconds - preStopSeconds;
    const timer = setTimeout(kill, graceSeconds * 1_000);
    await ended;
    clearTimeout(timer);
    const exit = child.exitCode ?? child.signalCode!;
    const limitBytes = readQuantity(this.#container.resources.limits.memory);
    return { pod: this.name, exit, isKilled, peakBytes, limitBytes };
  }

  /** Runs preStop. Returns the seconds that it would take in a cluster. */
  async #runPreStop(): Promise<number> {
    // After preStop, the process may have ended. So its peak memory is read first.
    this.#peakBytes = readPeakBytes(this.pid);
    const { scale } = this.#node;
    const { sleep: pause, exec } = this.#container.lifecycle?.preStop ?? {};
    if (pause) await sleep(pause.seconds * scale * 1_000);
    if (!exec) return pause?.seconds ?? 0;
    const script: string = exec.command[2];
    let seconds = 0;
    const here = script
      .replaceAll(/sleep (\d+)/g, (_, each) => {
        seconds += Number(each);
        return `sleep ${Number(each) * scale}`;
      })
      .replaceAll(/(kill -\w+) 1\b/g, `$1 ${this.pid}`);
    await once(spawn('sh', ['-c', here], { stdio: 'ignore' }), 'exit');
    return seconds;
  }
}

/** Returns a process's peak memory, or 0 if the system does not report it. */
function readPeakBytes(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
