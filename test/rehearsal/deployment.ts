import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { countPods } from '../../k8s/check/rules/replicas.ts';
import type { EndpointBalancer } from '../load/balancer.ts';
import { type Launch, type Node, Pod, type PodEnd, type Template } from './pod.ts';

/**
 * The longest time until nodes and balancers learn of a new or ending pod. It is shorter than preStop, which takes 8 s.
 */
const LAG_MS = 6_000;

/** The pause between two comparisons of the actual and the desired state. */
const TICK_MS = 20;

/**
 * The pause before a container that ended is started again. It is long enough that one fault causes only one crash
 * during the rehearsal.
 */
const BACK_OFF_MS = 10_000;

const RESTARTED = 'kubectl.kubernetes.io/restartedAt';

/** The parts of the cluster that a Deployment uses. */
export interface Surroundings {
  node: Node;
  launch(node: Node, template: Template): Promise<Launch>;
  balancer: EndpointBalancer | undefined;
  /** Called for each pod that has ended. */
  onEnd(end: PodEnd): void;
}

/**
 * The controller of a Deployment. It keeps the desired number of pods of the newest template running, and replaces the
 * pods of older templates.
 */
export class Deployment {
  readonly name: string;
  /** One template per revision, oldest first. The last one is current. */
  readonly #templates: Template[] = [];
  readonly #revisions = new Map<Template, number>();
  // biome-ignore lint/suspicious/noExplicitAny: the manifests' check validates every spec against its schema
  #spec: any;
  #replicas = 0;
  readonly #around: Surroundings;
  readonly #endings = new Set<Promise<void>>();
  #pods: Pod[] = [];
  #made = 0;
  #isStopped = false;
  #loop: Promise<void> | undefined;

  constructor(name: string, around: Surroundings) {
    this.name = name;
    this.#around = around;
  }

  get pods(): readonly Pod[] {
    return this.#pods;
  }

  /** Returns the current template. After a roll-out, all pods have it. */
  get template(): Template {
    return this.#templates.at(-1);
  }

  // biome-ignore lint/suspicious/noExplicitAny: the manifests' check validates the spec against its schema
  apply(spec: any, replicas: number): void {
    this.#spec = spec;
    this.#replicas = replicas;
    const template = structuredClone(spec.template);
    // Keeps the annotation of an earlier restart, as Kubernetes does.
    const noted = this.template?.metadata.annotations?.[RESTARTED];
    if (noted) template.metadata.annotations = { ...template.metadata.annotations, [RESTARTED]: noted };
    if (!isDeepStrictEqual(template, this.template)) this.#adopt(template);
    this.#loop ??= this.#reconcile();
  }

  restart(): void {
    const template = structuredClone(this.template);
    template.metadata.annotations = {
      ...template.metadata.annotations,
      [RESTARTED]: new Date().toISOString(),
    };
    this.#adopt(template);
  }

  /** Makes a template the current one. A template that existed before gets a new revision. */
  #adopt(template: Template): void {
    const at = this.#templates.indexOf(template);
    if (at >= 0) this.#templates.splice(at, 1);
    this.#templates.push(template);
    this.#revisions.set(template, Math.max(0, ...this.#revisions.values()) + 1);
  }

  #find(revision: number): Template {
    const template = this.#templates.find((each) => this.#revisions.get(each) === revision);
    if (template === undefined) throw new Error(`unable to find the specified revision ${revision}`);
    return template;
  }

  /** Describes the template of one revision. Without a revision, lists the numbers of all revisions, oldest first. */
  describeHistory(revision: number | undefined): string {
    if (revision !== undefined)
      return `Pod Template:\n    Image:\t${this.#find(revision).spec.containers[0].image}\n`;
    const rows = this.#templates.map((template) => `${this.#revisions.get(template)}         <none>\n`);
    return `REVISION  CHANGE-CAUSE\n${rows.join('')}`;
  }

  undo(revision: number): void {
    this.#adopt(this.#find(revision));
  }

  /** Returns true if there are as many pods as desired, and all of them are available and use the current template. */
  get isRolledOut(): boolean {
    return (
      this.#pods.length === this.#replicas &&
      this.#pods.every((pod) => pod.template === this.template && pod.isAvailable)
    );
  }

  /** Resolves when the roll-out is complete. Rejects after the time limit. */
  async untilRolledOut(limitMs: number): Promise<void> {
    const giveUpAt = performance.now() + limitMs;
    while (!this.isRolledOut) {
      if (performance.now() > giveUpAt)
        throw new Error(`timed out waiting for the condition${this.#describeWaits()}`);
      await sleep(TICK_MS);
    }
  }

  /** For each pod that is not available yet, returns the last part of the pod's output. */
  #describeWaits(): string {
    const waits = this.#pods.filter(({ isAvailable }) => !isAvailable);
    return waits.map(({ name, log }) => `\n${name}: ${log.slice(-2_000)}`).join('');
  }

  async #reconcile(): Promise<void> {
    while (!this.#isStopped) {
      this.#step();
      await sleep(TICK_MS);
    }
  }

  #step(): void {
    const fresh = this.#pods.filter((pod) => pod.template === this.template);
    const old = this.#pods.filter((pod) => pod.template !== this.template);
    const surge = countPods(this.#spec.strategy.rollingUpdate.maxSurge, this.#replicas);
    const available = this.#pods.filter((pod) => pod.isAvailable).length;
    const broken = old.find((pod) => !pod.isAvailable);
    // Pods that are ending do not count here, so their successors are created while they end.
    if (fresh.length < this.#replicas && this.#pods.length < this.#replicas + surge) this.#add();
    else if (broken) this.#remove(broken);
    else if (old[0] && available > this.#replicas) this.#remove(old[0]);
  }

  #add(): void {
    const { node, launch } = this.#around;
    const { template } = this;
    const pod = new Pod(`${this.name}-${++this.#made}`, template, node, () => launch(node, template));
    this.#pods.push(pod);
    void this.#start(pod);
  }

  async #start(pod: Pod): Promise<void> {
    const { node, balancer } = this.#around;
    while (!(await pod.start())) {
      await sleep(BACK_OFF_MS * node.scale);
      if (pod.isEnding) return;
    }
    // A pod becomes an endpoint when it is ready. Balancers learn of the endpoint a little later.
    const endpointAdded = sleep(LAG_MS * node.scale).then(async () => {
      if (pod.isEnding) return;
      pod.isEndpoint = true;
      await balancer?.add(pod.origin);
    });
    await sleep((this.#spec.minReadySeconds ?? 0) * node.scale * 1_000);
    await endpointAdded;
    pod.isAvailable = !pod.isEnding;
  }

  #remove(pod: Pod): void {
    this.#pods = this.#pods.filter((each) => each !== pod);
    const end = this.#end(pod).finally(() => this.#endings.delete(end));
    this.#endings.add(end);
  }

  async #end(pod: Pod): Promise<void> {
    const { node, balancer, onEnd } = this.#around;
    const ended = pod.end();
    await sleep(LAG_MS * node.scale);
    if (pod.isEndpoint) await balancer?.remove(pod.origin);
    onEnd(await ended);
  }

  /** Ends all pods at the same time. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
    for (const pod of this.#pods.slice()) this.#remove(pod);
    await Promise.all(this.#endings);
  }

  /** Resolves when the pods that are ending have ended. */
  async untilEnded(): Promise<void> {
    await Promise.all(this.#endings);
  }
}
