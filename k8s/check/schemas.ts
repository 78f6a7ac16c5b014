import type { KubernetesObject } from './objects.ts';
import { watchReads } from './watch-reads.ts';

/** Packages that carry the schemas, by API group; the built-in groups are the first one's. */
const PACKAGES: Record<string, string> = {
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
};

/** Kinds of AWS's and Google's controllers, of which no package has the schemas. */
const OF_PLATFORMS = new Set([
  'gateway.k8s.aws/v1 TargetGroupConfiguration',
  'networking.gke.io/v1 GCPBackendPolicy',
  'networking.gke.io/v1 HealthCheckPolicy',
]);

interface Model {
  prototype: { validate(this: object): void };
}

/**
 * What an object's schema has against it, unknown fields included, which a cluster would drop in silence. Rejects
 * where there is no schema of its API version and kind.
 */
export async function validateObject(object: KubernetesObject): Promise<string[]> {
  // The list of allowed fields is their schema.
  if (OF_PLATFORMS.has(`${object.apiVersion} ${object.kind}`)) return [];
  const model = await findModel(object);
  const { proxy, listUnread } = watchReads(object);
  try {
    // The package's validators take what they are called on; a field that they never looked at is in no schema.
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
