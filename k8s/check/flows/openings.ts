import { type KubernetesObject, nameOf } from '../objects.ts';
import { listWorkloads, ofKind, selects, type Workload } from '../rules/rule.ts';
import type { Flow, Place } from './flow.ts';
import { readPort } from './needed.ts';

/** The direction of the traffic that a policy restricts: into the selected pods, or out of them. */
export type Direction = 'Ingress' | 'Egress';

/** A peer with which a policy's rule allows connections. */
export type Peer =
  | { kind: 'everyone' }
  | { kind: 'pods'; workload: Workload }
  | { kind: 'namespace'; name: string }
  | { kind: 'network'; cidr: string; except: readonly string[] };

/** The connections that a policy allows between a workload and one peer. An undefined `port` means all ports. */
export interface Opening {
  policy: string;
  direction: Direction;
  workload: Workload;
  peer: Peer;
  protocol: string;
  port: number | undefined;
}

interface PolicyPeer {
  podSelector?: object;
  namespaceSelector?: { matchLabels?: Record<string, string> };
  ipBlock?: { cidr: string; except?: string[] };
}

interface PolicyPort {
  protocol?: string;
  port?: number | string;
  endPort?: number;
}

/** Returns all connections that the policies allow. */
export function listOpenings(objects: readonly KubernetesObject[]): Opening[] {
  return ofKind(objects, 'NetworkPolicy').flatMap((policy) =>
    listWorkloads(objects)
      .filter(({ labels }) => selects(policy.spec.podSelector, labels))
      .flatMap((workload) => [
        ...openingsOf(objects, policy, workload, 'Ingress'),
        ...openingsOf(objects, policy, workload, 'Egress'),
      ]),
  );
}

/** Returns whether any policy denies the workload's traffic in this direction by default. */
export const isIsolated = (
  objects: readonly KubernetesObject[],
  workload: Workload,
  direction: Direction,
): boolean =>
  ofKind(objects, 'NetworkPolicy').some(
    ({ spec }) =>
      selects(spec.podSelector, workload.labels) && spec.policyTypes?.includes(direction) === true,
  );

function openingsOf(
  objects: readonly KubernetesObject[],
  policy: KubernetesObject,
  workload: Workload,
  direction: Direction,
): Opening[] {
  if (policy.spec.policyTypes?.includes(direction) !== true) return [];
  const rules: { from?: PolicyPeer[]; to?: PolicyPeer[]; ports?: PolicyPort[] }[] =
    policy.spec[direction.toLowerCase()] ?? [];
  return rules.flatMap(({ from, to, ports }) => {
    const policyPeers = direction === 'Ingress' ? from : to;
    const peers = policyPeers?.length
      ? policyPeers.flatMap((policyPeer) => readPeer(objects, policyPeer))
      : [EVERYONE];
    return peers.flatMap((peer) => {
      const peerWorkload = peer.kind === 'pods' ? peer.workload : undefined;
      // If a policy gives a port by name, the pods that receive the connection define the port's number.
      const listener = direction === 'Ingress' ? workload : peerWorkload;
      return (ports?.length ? ports : [{}]).map(({ protocol = 'TCP', port, endPort }) => ({
        policy: nameOf(policy),
        direction,
        workload,
        peer,
        protocol,
        // A range of ports counts as all ports, because both are too wide: each connection needs only one port.
        port: endPort === undefined && port !== undefined ? numberOf(listener, port) : undefined,
      }));
    });
  });
}

const EVERYONE: Peer = { kind: 'everyone' };

const numberOf = (listener: Workload | undefined, port: number | string): number =>
  typeof port === 'number' ? port : readPort(listener!, port);

function readPeer(objects: readonly KubernetesObject[], peer: PolicyPeer): Peer[] {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  if (ipBlock) return [{ kind: 'network', cidr: ipBlock.cidr, except: ipBlock.except ?? [] }];
  if (namespaceSelector) {
    const name = namespaceSelector.matchLabels?.['kubernetes.io/metadata.name'];
    return [name === undefined ? EVERYONE : { kind: 'namespace', name }];
  }
  return listWorkloads(objects)
    .filter(({ labels }) => selects(podSelector!, labels))
    .map((workload) => ({ kind: 'pods', workload }));
}

/** The shortest allowed prefix of a managed store's IPv4 network. A wider network could include unrelated hosts. */
const SHORTEST_PREFIX = 24;

/** The private networks that a rule for a public service must exclude. */
const PRIVATE_NETWORKS = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'];

const isNarrow = (cidr: string): boolean =>
  Number(cidr.split('/')[1]) >= (cidr.includes(':') ? 64 : SHORTEST_PREFIX);

/** Returns whether an opening allows a flow at one end: at the source for `Egress`, and at the target for `Ingress`. */
export function serves(opening: Opening, flow: Flow): boolean {
  const [own, other] = opening.direction === 'Egress' ? [flow.from, flow.to] : [flow.to, flow.from];
  return (
    own.kind === 'pods' &&
    own.workload.owner === opening.workload.owner &&
    opening.port === flow.port &&
    opening.protocol === flow.protocol &&
    meets(opening.peer, other)
  );
}

/**
 * Returns whether a peer contains a place. The address of a host outside the cluster is unknown here. So every narrow
 * network counts as containing the host. The whole Internet without the private networks counts as containing every
 * public host.
 */
function meets(peer: Peer, place: Place): boolean {
  if (peer.kind === 'pods') return place.kind === 'pods' && place.workload.owner === peer.workload.owner;
  if (peer.kind === 'namespace') return place.kind === 'namespace' && place.name === peer.name;
  if (peer.kind === 'network' && place.kind === 'network') return peer.cidr === place.cidr;
  if (peer.kind !== 'network' || place.kind !== 'outside') return false;
  if (isNarrow(peer.cidr)) return true;
  return (
    place.isPublic &&
    peer.cidr === '0.0.0.0/0' &&
    PRIVATE_NETWORKS.every((cidr) => peer.except.includes(cidr))
  );
}

function describePeer(peer: Peer): string {
  if (peer.kind === 'pods') return peer.workload.owner.metadata.name;
  if (peer.kind === 'namespace') return `namespace ${peer.name}`;
  return peer.kind === 'network' ? peer.cidr : 'everyone';
}

/** Describes an opening, for example as `NetworkPolicy/names opens api -> 0.0.0.0/0 every port`. */
export function describeOpening({ policy, direction, workload, peer, protocol, port }: Opening): string {
  const own = workload.owner.metadata.name;
  const other = describePeer(peer);
  const way = direction === 'Egress' ? `${own} -> ${other}` : `${other} -> ${own}`;
  return `${policy} opens ${way} ${port === undefined ? 'every port' : `${protocol} ${port}`}`;
}
