import type { Workload } from '../rules/rule.ts';

/** Where traffic begins or ends. */
export type Place =
  /** Pods of the overlay: those of one workload. */
  | { kind: 'pods'; workload: Workload }
  /** Pods of another namespace. */
  | { kind: 'namespace'; name: string }
  /** A load balancer that is no pod, by the network that its requests come from. */
  | { kind: 'network'; cidr: string }
  /** Outside of the cluster: a managed store, or a public service. */
  | { kind: 'outside'; host: string; isPublic: boolean };

/** Somebody opens connections to somebody. */
export interface Flow {
  from: Place;
  to: Place;
  protocol: 'TCP' | 'UDP';
  port: number;
}

/** `api`, `namespace monitoring`, `postgres.example.org` */
export function describePlace(place: Place): string {
  if (place.kind === 'pods') return place.workload.owner.metadata.name;
  if (place.kind === 'network') return place.cidr;
  return place.kind === 'namespace' ? `namespace ${place.name}` : place.host;
}

/** `api -> pgbouncer TCP 6432` */
export const describeFlow = ({ from, to, protocol, port }: Flow): string =>
  `${describePlace(from)} -> ${describePlace(to)} ${protocol} ${port}`;
