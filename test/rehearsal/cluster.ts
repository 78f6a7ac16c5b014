import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { readObjects } from '../../k8s/check/kustomize.ts';
import { type KubernetesObject, nameOf } from '../../k8s/check/objects.ts';
import { readSecret } from '../../k8s/check/rules/environment.ts';
import { ofKind } from '../../k8s/check/rules/rule.ts';
import { type EndpointBalancer, startEndpointBalancer } from '../load/balancer.ts';
import { Deployment } from './deployment.ts';
import { launchPooler, launchService, readContainerEnv } from './launches.ts';
import type { Node, PodEnd } from './pod.ts';
import type { Images } from './releases.ts';
import { startServiceBalancer } from './service-balancer.ts';

/**
 * The most api pods that the gateway has room for: the autoscaler's minimum, the pods that a roll-out adds, and ending
 * pods.
 */
const API_SLOTS = 16;

interface Job {
  condition: 'Complete' | 'Failed' | '';
  log: string;
}

/**
 * A cluster of local processes. It obeys kubectl commands as Kubernetes does, but only those that the project's scripts
 * and documents need. Other commands are errors.
 */
export class Cluster implements AsyncDisposable {
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #deployments = new Map<string, Deployment>();
  readonly #jobs = new Map<string, Job>();
  readonly #servers = new AsyncDisposableStack();
  readonly #node: Node;
  /** The balancers that clients and pods connect to: the gateway in front of `api`, and the Service of `pgbouncer`. */
  readonly gateway: EndpointBalancer;
  readonly pooler: EndpointBalancer;
  readonly ends: PodEnd[] = [];

  private constructor(node: Node, gateway: EndpointBalancer, pooler: EndpointBalancer) {
    this.#node = { ...node, objects: () => [...this.#objects.values()] };
    this.gateway = gateway;
    this.pooler = pooler;
  }

  static async open(images: Images, scale: number): Promise<Cluster> {
    const gateway = await startEndpointBalancer(API_SLOTS);
    return new Cluster({ images, scale, objects: () => [] }, gateway, await startServiceBalancer());
  }

  get deployments(): ReadonlyMap<string, Deployment> {
    return this.#deployments;
  }

  /** Runs a kubectl command. Returns the command's output, or rejects with an error message. */
  async kubectl(args: readonly string[]): Promise<string> {
    const [verb, ...rest] = args[0] === '-n' || args[0] === '--namespace' ? args.slice(2) : args;
    switch (verb) {
      case 'kustomize':
        return (await promisify(execFile)('kubectl', [...args], { maxBuffer: 64 << 20 })).stdout;
      case 'apply':
        return this.#apply(rest);
      case 'delete':
        return String(this.#jobs.delete(rest[1]!) && this.#objects.delete(`Job/${rest[1]}`));
      case 'get':
        return this.#get(rest);
      case 'patch':
        return this.#patch(rest);
      case 'logs':
        return this.#logs(rest);
      case 'rollout':
        return this.#rollout(rest);
      case 'config':
        return 'rehearsal\n';
      case 'describe':
        return this.#listPods();
      case 'exec':
        return this.#exec(rest);
      default:
        throw new Error(`the rehearsal knows no kubectl ${args.join(' ')}`);
    }
  }

  #apply(args: readonly string[], isDry = false): string {
    if (args[0] === '--dry-run=server') return this.#apply(args.slice(1), true);
    const [, file = '', , selector = ''] = args;
    const isLeft = [...selector.matchAll(/([^\s,]+) notin \(([\w, ]+)\)/g)].map(
      ([, label, listed]) =>
        ({ metadata }: KubernetesObject) =>
          listed!.split(', ').includes(metadata.labels?.[label!] ?? ''),
    );
    const objects = readObjects(readFileSync(file, 'utf8')).filter(
      (object) => !isLeft.some((leaves) => leaves(object)),
    );
    if (isDry) return '';
    for (const object of objects) this.#objects.set(nameOf(object), object);
    // Stores all objects first, because some of the objects contain files that pods need.
    for (const object of objects) this.#take(object);
    return objects.map((object) => `${nameOf(object)} configured\n`).join('');
  }

  #take({ kind, metadata: { name }, spec }: KubernetesObject): void {
    if (kind === 'Deployment') this.#deploy(name, spec);
    if (kind === 'Job' && !this.#jobs.has(name)) {
      const job: Job = { condition: '', log: '' };
      this.#jobs.set(name, job);
      void this.#run(job, spec);
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: the manifests' check validates every spec against its schema
  #deploy(name: string, spec: any): void {
    const [autoscaler] = ofKind([...this.#objects.values()], 'HorizontalPodAutoscaler').filter(
      (each) => each.spec.scaleTargetRef.name === name,
    );
    const isPooler = name === 'pgbouncer';
    const deployment =
      this.#deployments.get(name) ??
      new Deployment(name, {
        node: this.#node,
        launch: isPooler ? launchPooler : launchService,
        balancer: { api: this.gateway, pgbouncer: this.pooler }[name],
        onEnd: (end) => void this.ends.push(end),
      });
    this.#deployments.set(name, deployment);
    deployment.apply(spec, autoscaler?.spec.minReplicas ?? spec.replicas ?? 1);
  }

  // biome-ignore lint/suspicious/noExplicitAny: the manifests' check validates every template against its schema
  async #run(job: Job, { template, backoffLimit, activeDeadlineSeconds }: any): Promise<void> {
    const [container] = template.spec.containers;
    const folder = this.#node.images.get(container.image.split(':').at(-1));
    for (let tries = 0; job.condition === '' && tries <= backoffLimit; tries += 1) {
      const child = spawn(process.execPath, ['src/main.ts', ...container.args], {
        cwd: folder,
        env: readContainerEnv(this.#node, template),
        timeout: activeDeadlineSeconds * 1_000,
      });
      const [output, errors, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'exit'),
      ]);
      job.log = output + errors;
      if (code === 0) job.condition = 'Complete';
    }
    job.condition ||= 'Failed';
  }

  #get([kind, name, value, output = '']: readonly string[]): string {
    const isChosen = name === '--selector';
    // `release.sh` asks why a Job's pod does not start. Here it starts immediately, so there is never a reason.
    if (kind === 'pods') return isChosen ? '' : this.#listPods();
    if (kind === 'deployment') return this.#deployments.has(name!) ? `deployment.apps/${name}` : '';
    if (kind === 'deployments')
      return [...this.#deployments.keys()]
        .filter((each) => !isChosen || value === `app.kubernetes.io/name=${each}`)
        .sort()
        .join(' ');
    if (kind === 'job') return this.#jobs.get(name!)?.condition ?? '';
    const [, key] = /^go-template={{index .data "([^"]+)" \| base64decode}}$/.exec(output) ?? [];
    const secret = readSecret(this.#node.objects(), name!);
    if (kind !== 'secret' || secret === undefined || key === undefined)
      throw new Error(`there is no ${kind} ${name} ${output}`);
    return secret[key] ?? '<no value>';
  }

  #patch([kind, name, option, given]: readonly string[]): string {
    const object = this.#objects.get(`Secret/${name}`);
    if (kind !== 'secret' || object === undefined) throw new Error(`there is no ${kind} ${name}`);
    const { data = {}, stringData = {} } = JSON.parse(
      option === '--patch-file' ? readFileSync(given!, 'utf8') : given!,
    );
    const patched = { ...object, data, stringData } as KubernetesObject;
    object.stringData = { ...readSecret([object], name!), ...readSecret([patched], name!) };
    delete object.data;
    return `secret/${name} patched\n`;
  }

  #listPods(): string {
    const pods = [...this.#deployments.values()].flatMap(({ pods }) => pods);
    return pods.map(({ name, isAvailable }) => `${name} ${isAvailable ? 'Ready' : 'NotReady'}\n`).join('');
  }

  #logs(args: readonly string[]): string {
    const [, component] = /component=(\w+)/.exec(args.join(' ')) ?? [];
    const target = component ? `deployment/${component}` : args.find((word) => word.includes('/'));
    if (target === undefined) throw new Error('expected a pod, or what makes one');
    const [kind, name = ''] = target.split('/');
    if (kind === 'job') return this.#jobs.get(name)?.log ?? '';
    return this.#deployment(target).pods[0]?.log ?? '';
  }

  #deployment(target: string): Deployment {
    const found = this.#deployments.get(target.split('/')[1]!);
    if (found === undefined) throw new Error(`deployments.apps "${target}" not found`);
    return found;
  }

  async #rollout([verb, ...rest]: readonly string[]): Promise<string> {
    const targets = rest.filter((word) => word.includes('/')).map((word) => this.#deployment(word));
    const [, limitSeconds] = /--timeout=(\d+)s/.exec(rest.join(' ')) ?? [];
    const [, number] = /--(?:to-)?revision=(\d+)/.exec(rest.join(' ')) ?? [];
    const revision = number === undefined ? undefined : Number(number);
    if (verb === 'history') return targets[0]!.describeHistory(revision);
    if (verb === 'undo' && revision === undefined) throw new Error('the rehearsal undoes by a number alone');
    for (const target of targets) {
      if (verb === 'restart') target.restart();
      if (verb === 'undo') target.undo(revision!);
      if (verb === 'status') await target.untilRolledOut(Number(limitSeconds ?? 300) * 1_000);
    }
    return `${rest.join(' ')} ${verb}\n`;
  }

  /** Runs a program in the first available pod of a Deployment. */
  async #exec([target = '', dashes, program, ...args]: readonly string[]): Promise<string> {
    if (dashes !== '--' || program !== 'node') throw new Error(`the rehearsal runs no ${program} in a pod`);
    const pod = this.#deployment(target).pods.find(({ isAvailable }) => isAvailable);
    if (pod === undefined) throw new Error(`${target} has no pod`);
    const { folder, env } = pod;
    return (await promisify(execFile)(process.execPath, args, { cwd: folder, env })).stdout;
  }

  /** Registers a server that is stopped when the cluster is stopped. */
  keep<T extends AsyncDisposable>(server: T): T {
    return this.#servers.use(server);
  }

  /** Resolves when no pod is ending. */
  async untilQuiet(): Promise<void> {
    await Promise.all([...this.#deployments.values()].map((each) => each.untilEnded()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#deployments.values()].map((each) => each.stop()));
    await this.gateway[Symbol.asyncDispose]();
    await this.pooler[Symbol.asyncDispose]();
    await this.#servers.disposeAsync();
  }
}
