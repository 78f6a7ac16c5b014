import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments, stringify } from 'yaml';

/**
 * Does the work of a canary for `k8s/release.sh`. It has three commands:
 *
 * - `objects MANIFESTS PODS` prints the canary's Deployment, Service and disruption budget.
 * - `route MANIFESTS WEIGHT` prints the routes that send WEIGHT percent of the requests to the canary.
 * - `compare NAMESPACE SECONDS` counts failed and slow requests of both versions for SECONDS, and judges the canary.
 *
 * Plain JavaScript, because it runs on the operator's own Node.
 */

const CANARY = 'api-canary';

/** The comparison gives a verdict only if the canary had at least this many requests. */
const FEWEST = 200;

/**
 * The canary is worse if its share of bad requests exceeds this factor times the stable version's share, plus the
 * constant below.
 */
const WORSE_FACTOR = 2;
const WORSE_SHARE = { failed: 0.001, slow: 0.01 };

const NAMED = ['Deployment', 'Service', 'PodDisruptionBudget'];

/** Makes the canary's Deployment, Service and disruption budget from those of `api`. */
export const makeCanary = (objects, pods) =>
  objects
    .filter(({ kind, metadata }) => NAMED.includes(kind) && metadata.name === 'api')
    .map((object) => toCanary(structuredClone(object), pods));

function toCanary(object, pods) {
  object.metadata.name = CANARY;
  const { kind, spec } = object;
  if (kind === 'Service') spec.selector.track = 'canary';
  else spec.selector.matchLabels.track = 'canary';
  if (kind === 'Deployment') {
    spec.replicas = pods;
    spec.template.metadata.labels.track = 'canary';
  }
  return object;
}

/** Returns the overlay's routes, changed so that `weight` percent of the requests go to the canary. */
export const splitRoutes = (objects, weight) =>
  objects
    .filter(({ kind }) => kind === 'HTTPRoute')
    .map((route) => {
      const split = structuredClone(route);
      if (weight > 0) for (const rule of split.spec.rules) rule.backendRefs = rule.backendRefs.flatMap(share);
      return split;

      function share(backend) {
        return [
          { ...backend, weight: 100 - weight },
          { ...backend, name: CANARY, weight },
        ];
      }
    });

/** Reads a pod's metrics. `failed` and `slow` each contain the number of bad requests and of all requests. */
export function countEvents(text) {
  const counts = { failed: { bad: 0, all: 0 }, slow: { bad: 0, all: 0 } };
  for (const [, labels, value] of text.matchAll(/^bookmarks_slo_events_total\{(.*)\} (\d+)/gm)) {
    const kind = labels.includes('class="speed"') ? counts.slow : counts.failed;
    kind.all += Number(value);
    if (labels.includes('result="bad"')) kind.bad += Number(value);
  }
  return counts;
}

/**
 * Counts the events of all pods between two readings. A reading maps the names of pods to their counts. If a pod is
 * new, or if its total number of requests fell (its process restarted), its counters began at 0 between the readings.
 */
export function countBetween(before, after) {
  const total = { failed: { bad: 0, all: 0 }, slow: { bad: 0, all: 0 } };
  for (const [pod, counts] of after)
    for (const kind of ['failed', 'slow']) {
      const earlier = before.get(pod)?.[kind];
      const first = earlier === undefined || counts[kind].all < earlier.all ? { bad: 0, all: 0 } : earlier;
      total[kind].bad += counts[kind].bad - first.bad;
      total[kind].all += counts[kind].all - first.all;
    }
  return total;
}

const shareOf = ({ bad, all }) => (all === 0 ? 0 : bad / all);

/**
 * Returns `as good`, `worse` with the kinds (`failed`, `slow`) in which the canary is worse, or `unknown` if the canary
 * got too few requests.
 */
export function judge(stable, canary) {
  const worse = ['failed', 'slow'].filter(
    (kind) => shareOf(canary[kind]) > WORSE_FACTOR * shareOf(stable[kind]) + WORSE_SHARE[kind],
  );
  if (canary.failed.all < FEWEST) return 'unknown';
  return worse.length > 0 ? `worse: ${worse.join(' and ')}` : 'as good';
}

const kubectl = (namespace, ...args) =>
  execFileSync('kubectl', ['--namespace', namespace, ...args], { encoding: 'utf8', maxBuffer: 64 << 20 });

const READ_METRICS = "fetch('http://127.0.0.1:9464/metrics').then(async (r) => console.log(await r.text()))";

/** Returns the counts of each pod of a track. */
function readTrack(namespace, track) {
  const selector = `app.kubernetes.io/component=api,track=${track}`;
  const pods = kubectl(namespace, 'get', 'pods', '--selector', selector, '--output', 'name').trim();
  if (pods === '') throw new Error(`there are no pods of track ${track}`);
  return new Map(
    pods
      .split('\n')
      .map((pod) => [pod, countEvents(kubectl(namespace, 'exec', pod, '--', 'node', '-e', READ_METRICS))]),
  );
}

async function compare(namespace, seconds) {
  const tracks = ['stable', 'canary'];
  const before = tracks.map((track) => readTrack(namespace, track));
  await new Promise((done) => setTimeout(done, seconds * 1_000));
  const [stable, canary] = tracks.map((track, n) => countBetween(before[n], readTrack(namespace, track)));
  for (const [track, { failed, slow }] of Object.entries({ stable, canary }))
    console.log(
      `${track}: ${failed.all} requests, ${failed.bad} failed; ${slow.bad} of ${slow.all} took longer than 1 s`,
    );
  const verdict = judge(stable, canary);
  console.log(`canary: ${verdict}`);
  process.exitCode = { 'as good': 0, unknown: 2 }[verdict] ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [command, place, number] = process.argv.slice(2);
  if (command === 'compare') await compare(place, Number(number));
  else {
    const objects = parseAllDocuments(readFileSync(place, 'utf8')).map((document) => document.toJS());
    const make = { objects: makeCanary, route: splitRoutes }[command];
    console.log(
      make(objects.filter(Boolean), Number(number))
        .map((object) => stringify(object))
        .join('---\n'),
    );
  }
}
