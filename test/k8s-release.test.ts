import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { countBetween, countEvents, makeCanary, splitRoutes } from '../k8s/canary.mjs';
import type { KubernetesObject } from '../k8s/check/objects.ts';
import { readOverlay } from '../k8s/check/overlay.ts';
import { findFaults } from '../k8s/check/rules.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { runDir } from './support/run.ts';

/**
 * Runs `k8s/release.sh` with a script in place of kubectl and the cluster. That script builds the manifests with the
 * real kubectl, once per overlay, and records all other kubectl commands. Each test decides how the migration and the
 * roll-outs end.
 */

const SCRIPT = join(import.meta.dirname, '../k8s/release.sh');

/**
 * The folder with the manifests that kubectl has built so far. Later tests use them again, because building takes most
 * of the time of a release.
 */
const BUILT = makeFolder('built-manifests', runDir());

interface Played {
  /** The responses of `kubectl get job`, one after another. The last one repeats. */
  job: string[];
  /** The reasons why the migration's pod does not run, one after another. The last one repeats. */
  waits?: string[];
  /** True if the manifests contain an object of a kind that the cluster does not know. */
  isRefused?: boolean;
  /** A Deployment whose roll-out does not progress. */
  stuck?: string;
  /** The time limit of the migration. */
  limitSeconds?: number;
  /** The options, and the overlay whose manifests are used. */
  args?: string[];
  /** What the operator types at the terminal. */
  input?: string;
  /** True if there is a canary. */
  hasCanary?: boolean;
  /** For each track, the responses of a pod's metrics endpoint, one after another. The last one repeats. */
  metrics?: Record<'stable' | 'canary', string[]>;
}

interface Release {
  code: number;
  output: string;
  /** The kubectl commands that change something, in order. */
  calls: string[];
}

const describeKubectl = (
  real: string,
  folder: string,
  stuck: string,
  isRefused: boolean,
) => `#!/usr/bin/env bash
set -eu
next() { head -n 1 "$1"; if [ "$(wc -l < "$1")" -gt 1 ]; then sed -i 1d "$1"; fi; }
if [ "$1" = kustomize ]; then
  built=${BUILT}/$(echo "$*" | cksum | tr -d ' ')
  if [ ! -e "$built" ]; then ${real} "$@" > "$built.new"; mv "$built.new" "$built"; fi
  exec cat "$built"
fi
if [ "$1" = --namespace ]; then echo "in $2" >> ${folder}/namespaces; shift 2; fi
case "$1 \${2-}" in
  'config current-context') echo staging ;;
  'get deployment') if [ "$3" = api-canary ]; then cat ${folder}/has-canary; else echo 3; fi ;;
  'get job') next ${folder}/job ;;
  'get pods')
    case "$*" in
      *track=*) echo "$*" | sed 's|.*track=\\([a-z]*\\).*|pod/\\1|' ;;
      *) next ${folder}/waits ;;
    esac ;;
  'exec '*) next "${folder}/$(basename "$2")" | tr ';' '\\n' ;;
  'get deployments') if [ "$3" = --selector ]; then echo pgbouncer; else echo 'api pgbouncer worker'; fi ;;
  'logs job/migrate') echo 'what the migration said' ;;
  'rollout status') echo "$*" >> ${folder}/calls; [ "$3" != 'deployment/${stuck}' ] ;;
  'apply --dry-run=server') echo "$*" | sed 's|--filename [^ ]*|--filename FILE|' >> ${folder}/calls; ${isRefused ? 'echo no matches for kind ServiceMonitor; exit 1' : ''} ;;
  *) echo "$*" | sed 's|--filename [^ ]*|--filename FILE|' >> ${folder}/calls ;;
esac
`;

async function release({
  job,
  waits = [''],
  stuck = 'none',
  isRefused = false,
  limitSeconds = 60,
  args = [],
  input = 'yes\n',
  hasCanary = false,
  metrics = { stable: [], canary: [] },
}: Played): Promise<Release> {
  const folder = makeFolder('release');
  onTestFinished(() => removeFolder(folder));
  const real = execFileSync('sh', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).trim();
  writeFileSync(join(folder, 'kubectl'), describeKubectl(real, folder, stuck, isRefused));
  chmodSync(join(folder, 'kubectl'), 0o755);
  const writeLines = (name: string, lines: string[]) =>
    writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(''));
  writeLines('job', job);
  writeLines('waits', waits);
  for (const [track, scrapes] of Object.entries(metrics)) writeLines(track, scrapes);
  writeFileSync(join(folder, 'calls'), '');
  writeFileSync(join(folder, 'has-canary'), hasCanary ? 'deployment.apps/api-canary\n' : '');
  const env = {
    ...process.env,
    PATH: `${folder}:${process.env.PATH}`,
    MIGRATION_LIMIT_SECONDS: `${limitSeconds}`,
    COMPARE_SECONDS: '0',
  };
  const { code, output } = await new Promise<{ code: number; output: string }>((resolve) => {
    const { stdin } = execFile('bash', [SCRIPT, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    );
    stdin!.on('error', () => {}).end(input);
  });
  const calls = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n').filter(Boolean);
  return { code, output, calls };
}

const CHECK = 'apply --dry-run=server --filename FILE --selector app.kubernetes.io/component notin (migrate)';
const MIGRATION = [
  CHECK,
  'delete job migrate --ignore-not-found --cascade=foreground --timeout=5m',
  'apply --filename FILE --selector app.kubernetes.io/component notin (api, worker),app.kubernetes.io/name notin (pgbouncer)',
];
const POOLER = 'apply --filename FILE --selector app.kubernetes.io/component notin (api, worker)';
/** The command that applies the objects that `canary.mjs` writes. */
const APPLY_MADE = 'apply --filename FILE';
const status = (name: string) => `rollout status deployment/${name} --timeout=20m`;

test('a release changes the schema first, then PgBouncer, then the pods, and waits for each roll-out', async () => {
  const { code, output, calls } = await release({
    job: ['', 'SuccessCriteriaMet', 'SuccessCriteriaMet Complete'],
  });
  expect([code, calls]).toEqual([
    0,
    [
      ...MIGRATION,
      POOLER,
      status('pgbouncer'),
      'apply --filename FILE',
      ...['api', 'pgbouncer', 'worker'].map(status),
    ],
  ]);
  expect(output).toContain('what the migration said');
});

test('kinds that the cluster does not know are reported before anything changes', async () => {
  const { code, output, calls } = await release({ job: ['Complete'], isRefused: true });
  expect([code, calls]).toEqual([1, [CHECK]]);
  expect(output).toContain('nothing was changed');
});

test('a failed migration is reported with its log, and the pods stay unchanged', async () => {
  const { code, output, calls } = await release({ job: ['', 'FailureTarget', 'FailureTarget Failed'] });
  expect([code, calls]).toEqual([1, MIGRATION]);
  expect(output).toContain('what the migration said');
  expect(output).toContain('the migration is Failed');
});

test('the release stops waiting for a migration that does not finish in time', async () => {
  const { code, output, calls } = await release({ job: [''], limitSeconds: 3 });
  expect([code, calls]).toEqual([1, MIGRATION]);
  expect(output).toContain('not finished after 3 s');
});

test('neither the pods nor PgBouncer change before the migration is complete', () => {
  const manifests = readOverlay('production');
  const runs = manifests.filter(({ kind }) => ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind));
  const isLater = ({ metadata: { labels = {} } }: KubernetesObject) =>
    ['api', 'worker'].includes(labels['app.kubernetes.io/component']!) ||
    labels['app.kubernetes.io/name'] === 'pgbouncer';
  expect(runs.map(({ metadata }) => metadata.name).sort()).toEqual(['api', 'pgbouncer', 'worker']);
  expect(runs.filter((object) => !isLater(object))).toEqual([]);
  expect(manifests.some((object) => object.kind === 'Job' && !isLater(object))).toBe(true);
});

test("the reason why the migration's pod waits is printed once", async () => {
  const waits = ['Unschedulable', 'Unschedulable', 'ContainerCreating', ''];
  const { code, output } = await release({ job: ['', '', '', 'Complete'], waits });
  expect(code).toBe(0);
  expect(output.match(/its pod waits: .*/g)).toEqual([
    'its pod waits: Unschedulable',
    'its pod waits: ContainerCreating',
  ]);
});

test.each(['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'CreateContainerConfigError'])(
  'a pod of the migration that cannot start because of %s stops the release at once',
  async (reason) => {
    const { code, output, calls } = await release({ job: [''], waits: ['ContainerCreating', reason] });
    expect([code, calls]).toEqual([1, MIGRATION]);
    expect(output).toContain(`the migration is stopped by ${reason}; the pods were not changed`);
  },
);

test.each(['api', 'worker'])(
  'a roll-out of %s without progress stops the release, which prints the ways to undo it',
  async (stuck) => {
    const { code, output, calls } = await release({ job: ['Complete'], stuck });
    expect([code, calls.at(-1)]).toEqual([1, status(stuck)]);
    expect(output).toContain('set the tag of the release before');
    expect(output).toContain('kubectl --namespace bookmarks rollout undo deployment/api deployment/worker');
  },
);

test('if PgBouncer does not become ready, the pods stay unchanged', async () => {
  const { code, output, calls } = await release({ job: ['Complete'], stuck: 'pgbouncer' });
  expect([code, calls]).toEqual([1, [...MIGRATION, POOLER, status('pgbouncer')]]);
  expect(output).toContain('kubectl --namespace bookmarks rollout undo deployment/pgbouncer');
});

test('manifests that cannot be built change nothing', async () => {
  const { code, calls } = await release({ job: ['Complete'], args: ['/no/such/overlay'] });
  expect([code, calls]).toEqual([1, []]);
});

test("the release prints the cluster's name, and changes nothing without confirmation", async () => {
  for (const input of ['', 'no\n', 'y\n']) {
    const { code, output, calls } = await release({ job: ['Complete'], input });
    expect([code, calls]).toEqual([1, []]);
    expect(output).toContain('registry.example.org/bookmark-service:1.0.0');
    expect(output).toContain('to namespace bookmarks of context staging');
  }
  const { code } = await release({ job: ['Complete'], input: '', args: ['--yes'] });
  expect(code).toBe(0);
});

test('a canary gets requests once its pods are ready, and the other pods stay unchanged', async () => {
  const args = ['--canary', '10'];
  const { code, output, calls } = await release({ job: ['Complete'], args });
  expect([code, calls]).toEqual([
    0,
    [...MIGRATION, POOLER, status('pgbouncer'), APPLY_MADE, status('api-canary'), APPLY_MADE],
  ]);
  expect(output).toContain('the canary serves 10 % of the requests');
  const broken = await release({ job: ['Complete'], args, stuck: 'api-canary' });
  expect([broken.code, broken.calls.at(-1)]).toEqual([1, status('api-canary')]);
});

test('both a release and --abort remove the canary, and remove its route first', async () => {
  const gone = [APPLY_MADE, expect.stringMatching(/^delete deployment\/api-canary service\/api-canary /)];
  const promoted = await release({ job: ['Complete'], hasCanary: true });
  expect(promoted.calls.slice(-2)).toEqual(gone);
  const aborted = await release({ job: [], hasCanary: true, args: ['--abort'] });
  expect([aborted.code, aborted.calls]).toEqual([0, gone]);
});

const scrape = (failed: number, slow: number, all: number): string =>
  [
    `bookmarks_slo_events_total{class="read",result="bad",version="1"} ${failed}`,
    `bookmarks_slo_events_total{class="read",result="good",version="1"} ${all - failed}`,
    `bookmarks_slo_events_total{class="speed",result="bad",version="1"} ${slow}`,
    `bookmarks_slo_events_total{class="speed",result="good",version="1"} ${all - slow}`,
  ].join(';');

test.each([
  ['as good', 0, [scrape(0, 0, 0), scrape(1, 5, 1_000)]],
  ['worse: failed', 1, [scrape(0, 0, 0), scrape(4, 5, 1_000)]],
  ['worse: slow', 1, [scrape(50, 500, 1_000), scrape(50, 540, 2_000)]],
  // The pod restarted, so its earlier counts are lost.
  ['worse: failed', 1, [scrape(0, 0, 5_000), scrape(10, 0, 1_000)]],
  ['unknown', 2, [scrape(0, 0, 0), scrape(9, 9, 150)]],
])('the canary is %s, and the comparison exits with code %i', async (verdict, code, canary) => {
  const stable = [scrape(900, 900, 1_000), scrape(901, 910, 2_000)];
  const compared = await release({ job: [], args: ['--compare'], metrics: { stable, canary } });
  expect(compared).toMatchObject({ code, calls: [] });
  expect(compared.output).toContain(`canary: ${verdict}\n`);
});

test('events are counted for each pod, so a pod that restarts, begins or ends does not change those of the others', () => {
  const read = (counts: Record<string, [number, number]>) =>
    new Map(
      Object.entries(counts).map(([pod, [failed, all]]) => [
        pod,
        countEvents(scrape(failed, 0, all).replaceAll(';', '\n')),
      ]),
    );
  const before = read({ stays: [500, 10_000], restarts: [90, 5_000], ends: [1, 7_000] });
  const after = read({ stays: [501, 11_000], restarts: [2, 400], begins: [3, 30] });
  expect(countBetween(before, after).failed).toEqual({ bad: 1 + 2 + 3, all: 1_000 + 400 + 30 });
});

test.each([['--canary', '0'], ['--canary', '51'], ['--canary', 'ten'], ['--no']])(
  'invalid options are refused: %s %s',
  async (...args) => {
    const { code, calls } = await release({ job: [], args: args.filter(Boolean) });
    expect([code, calls]).toEqual([2, []]);
  },
);

test('the objects of a canary follow every rule when they are added to the others', async () => {
  const objects = readOverlay('production');
  const [route] = splitRoutes(objects, 10);
  const all = [...objects.filter(({ kind }) => kind !== 'HTTPRoute'), ...makeCanary(objects, 2), route!];
  expect(await findFaults(all)).toEqual([]);
  expect(route!.spec.rules[0].backendRefs).toEqual([
    { name: 'api', port: 80, weight: 90 },
    { name: 'api-canary', port: 80, weight: 10 },
  ]);
});
