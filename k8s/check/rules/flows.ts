import { describeFlow, type Flow, type Place } from '../flows/flow.ts';
import { listNeededFlows, listOptionalFlows } from '../flows/needed.ts';
import {
  type Direction,
  describeOpening,
  isIsolated,
  listOpenings,
  type Opening,
  serves,
} from '../flows/openings.ts';
import type { KubernetesObject } from '../objects.ts';
import { listWorkloads, type Rule } from './rule.ts';

/** Compares the flows that the overlay needs with those that its policies allow, at both ends of each flow. */

const DIRECTIONS: readonly Direction[] = ['Ingress', 'Egress'];

const sideOf = (flow: Flow, direction: Direction): Place => (direction === 'Egress' ? flow.from : flow.to);

function findClosed(objects: readonly KubernetesObject[], openings: readonly Opening[]): string[] {
  return listNeededFlows(objects).flatMap((flow) =>
    DIRECTIONS.filter((direction) => {
      const place = sideOf(flow, direction);
      return (
        place.kind === 'pods' &&
        isIsolated(objects, place.workload, direction) &&
        !openings.some((opening) => opening.direction === direction && serves(opening, flow))
      );
    }).map((direction) => `${describeFlow(flow)}: no policy opens its ${direction.toLowerCase()}`),
  );
}

/** Finds hosts outside the cluster that are in different networks according to different policies. */
function findDiffering(objects: readonly KubernetesObject[], openings: readonly Opening[]): string[] {
  const networks = new Map<string, Set<string>>();
  for (const flow of listNeededFlows(objects)) {
    if (flow.to.kind !== 'outside') continue;
    const cidrs = openings
      .filter((opening) => opening.direction === 'Egress' && serves(opening, flow))
      .flatMap(({ peer }) => (peer.kind === 'network' ? [peer.cidr] : []));
    const known = networks.get(flow.to.host) ?? new Set();
    networks.set(flow.to.host, known.union(new Set([cidrs.sort().join(' ')])));
  }
  return [...networks]
    .filter(([, known]) => known.size > 1)
    .map(([host, known]) => `${host} has several networks: ${[...known].join(', ')}`);
}

export const flowRules: Rule[] = [
  {
    name: 'network policies deny by default',
    check: (objects) =>
      listWorkloads(objects).flatMap((workload) =>
        DIRECTIONS.filter((direction) => !isIsolated(objects, workload, direction)).map(
          (direction) => `${workload.owner.metadata.name}: no policy closes its ${direction.toLowerCase()}`,
        ),
      ),
  },
  {
    name: 'the network policies of both sides allow all needed connections',
    check: (objects) => {
      const openings = listOpenings(objects);
      return [...findClosed(objects, openings), ...findDiffering(objects, openings)];
    },
  },
  {
    name: 'network policies allow nothing else',
    check: (objects) => {
      const flows = [...listNeededFlows(objects), ...listOptionalFlows(objects)];
      return listOpenings(objects)
        .filter((opening) => !flows.some((flow) => serves(opening, flow)))
        .map((opening) => `${describeOpening(opening)}, but nothing needs it`);
    },
  },
];
