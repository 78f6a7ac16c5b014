import type { Workload } from '../rules/rule.ts';

/** Where traffic starts or ends. */
export type Place =
  /** Pods of one workload of the overlay. */
  | { kind: 'pods'; workload: Workload }
  /** Pods of another namespace. */
  | { kind: 'namespace'; name: string }
  /** A load balancer that is not a pod. `cidr` is the network from which it sends requests. */
  | { kind: 'network'; cidr: string }
  /** A host outside the cluster: a managed store or a public service. */
  | { kind: 'outside'; host: string; isPublic: boolean };

/** A connection that one place opens to another. */
export interface Flow {
  from: Place;
  to: Place;
  protocol: 'TCP' | 'UDP';
  port: number;
}

/** Names a place, for example `api`, `namespace monitoring` or `postgres.example.org`. */
export function describePlace(place: Place): string {
  if (place.kind === 'pods') return place.workload.owner.metadata.name;
  if (place.kind === 'network') return place.cidr;
  return place.kind === 'namespace' ? `namespace ${place.name}` : place.host;
}

/** Describes a flow, for example as `api -> pgbouncer TCP 6432`. */
export const describeFlow = ({ from, to, protocol, port }: Flow): string =>
  `${describePlace(from)} -> ${describePlace(to)} ${protocol} ${port}`;
