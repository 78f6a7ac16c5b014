import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder, removeFolder } from './support/folders.ts';

/**
 * `k8s/release.sh` on a cluster that is played by a script: it builds the manifests by the real kubectl, notes what it is
 * asked for, and lets the migration and the roll-outs end as the test says.
 */

const SCRIPT = join(import.meta.dirname, '../k8s/release.sh');

interface Played {
  /** What `kubectl get job` gives, one call after the other; the last one again and again. */
  job: string[];
  /** Deployments whose roll-out does not come on. */
  stuck?: string;
  /** Overlay of the manifests. */
  overlay?: string;
}

interface Release {
  code: number;
  output: string;
  /** What kubectl was asked to do, in order, but for what only reads. */
  calls: string[];
}

const describeKubectl = (real: string, folder: string, stuck: string) => `#!/usr/bin/env bash
set -eu
if [ "$1" = kustomize ]; then exec ${real} "$@"; fi
if [ "$1" = --namespace ]; then echo "in $2" >> ${folder}/namespaces; shift 2; fi
case "$1 \${2-}" in
  'get job') head -n 1 ${folder}/job; [ "$(wc -l < ${folder}/job)" -gt 1 ] && sed -i 1d ${folder}/job || true ;;
  'get deployments') echo 'api pgbouncer worker' ;;
  'logs job/migrate') echo 'what the migration said' ;;
  'rollout status') echo "$*" >> ${folder}/calls; [ "$3" != 'deployment/${stuck}' ] ;;
  *) echo "$*" | sed 's|--filename [^ ]*|--filename FILE|' >> ${folder}/calls ;;
esac
`;

async function release({ job, stuck = 'none', overlay = '' }: Played): Promise<Release> {
  const folder = makeFolder('release');
  onTestFinished(() => removeFolder(folder));
  const real = execFileSync('sh', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).trim();
  writeFileSync(join(folder, 'kubectl'), describeKubectl(real, folder, stuck));
  chmodSync(join(folder, 'kubectl'), 0o755);
  writeFileSync(join(folder, 'job'), job.map((line) => `${line}\n`).join(''));
  writeFileSync(join(folder, 'calls'), '');
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, MIGRATION_LIMIT_SECONDS: '3' };
  const args = overlay ? [overlay] : [];
  const { code, output } = await new Promise<{ code: number; output: string }>((resolve) =>
    execFile('bash', [SCRIPT, ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    ),
  );
  const calls = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n').filter(Boolean);
  return { code, output, calls };
}

const MIGRATION = [
  'delete job migrate --ignore-not-found --cascade=foreground',
  'apply --filename FILE --selector app.kubernetes.io/component notin (api, worker)',
];
const status = (name: string) => `rollout status deployment/${name} --timeout=20m`;

test('the schema comes first, then the pods, and each roll-out is awaited', async () => {
  const { code, output, calls } = await release({
    job: ['', 'SuccessCriteriaMet', 'SuccessCriteriaMet Complete'],
  });
  expect([code, calls]).toEqual([
    0,
    [...MIGRATION, 'apply --filename FILE', status('api'), status('pgbouncer'), status('worker')],
  ]);
  expect(output).toContain('what the migration said');
});

test('a migration that fails is told with its log, and the pods are left as they were', async () => {
  const { code, output, calls } = await release({ job: ['', 'FailureTarget', 'FailureTarget Failed'] });
  expect([code, calls]).toEqual([1, MIGRATION]);
  expect(output).toContain('what the migration said');
  expect(output).toContain('the migration is Failed');
});

test('a migration that does not end is given up', async () => {
  const { code, output, calls } = await release({ job: [''] });
  expect([code, calls]).toEqual([1, MIGRATION]);
  expect(output).toContain('not over after 3 s');
});

test('a roll-out that does not come on ends it, with the line that undoes it', async () => {
  const { code, output, calls } = await release({ job: ['Complete'], stuck: 'pgbouncer' });
  expect(code).toBe(1);
  expect(calls.at(-1)).toBe(status('pgbouncer'));
  expect(output).toContain('kubectl --namespace bookmarks rollout undo deployment/pgbouncer');
});

test('manifests that cannot be built change nothing', async () => {
  const { code, calls } = await release({ job: ['Complete'], overlay: '/no/such/overlay' });
  expect([code, calls]).toEqual([1, []]);
});
