import type { KubernetesObject } from './objects.ts';
import { watchReads } from './watch-reads.ts';

/** For each API group, the package with its schemas. Built-in groups are in `kubernetes-models`. */
const PACKAGES: Record<string, string> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

/** Kinds of AWS's and Google's controllers. No package has their schemas, so their fields are not checked. */
const OF_PLATFORMS = new Set([
  'gateway.k8s.aws/v1 TargetGroupConfiguration',
  'networking.gke.io/v1 GCPBackendPolicy',
  'networking.gke.io/v1 HealthCheckPolicy',
]);

interface Model {
  prototype: { validate(this: object): void };
}

/**
 * Returns an object's violations of its schema, including unknown fields, which a cluster would silently drop.
 * Rejects if there is no schema for its API version and kind.
 */
export async function validateObject(object: KubernetesObject): Promise<string[]> {
  if (OF_PLATFORMS.has(`${object.apiVersion} ${object.kind}`)) return [];
  const model = await findModel(object);
  const { proxy, listUnread } = watchReads(object);
  try {
    // The proxy records which fields the validators read. A field that they never read is not in the schema.
    model.prototype.validate.call(proxy);
  } catch (error) {
    return [(error as Error).message];
  }
  return listUnread().map((path) => `${path}: unknown field`);
}

async function findModel({ apiVersion, kind }: KubernetesObject): Promise<Model> {
  const group = apiVersion.includes('/') ? apiVersion.split('/')[0]! : '';
  const path = `${PACKAGES[group] ?? 'kubernetes-models'}/${apiVersion}/${kind}`;
  const module = (await import(path).catch(() => ({}))) as Record<string, Model | undefined>;
  const model = module[kind];
  if (model === undefined) throw new Error(`there is no schema of ${apiVersion} ${kind}`);
  return model;
}
