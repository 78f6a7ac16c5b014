import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Tests the functions of `.ci/steps.sh`, with which `.ci/run` runs its steps. */

const STEPS = join(import.meta.dirname, '../.ci/steps.sh');

/** Runs a script as `.ci/run` does. Returns its exit code, and its output without the lines that contain times. */
function runSteps(script: string): { code: number | null; lines: string[] } {
  const { status, stdout } = spawnSync(
    'bash',
    ['-c', `set -uo pipefail\nsource ${STEPS}\n${script}\ncount`],
    {
      encoding: 'utf8',
    },
  );
  const lines = stdout.split('\n').filter((line) => line !== '' && !/^== \d+ s for /.test(line));
  return { code: status, lines };
}

test('functions run in parallel, and the output of each is printed as a whole and in order', () => {
  const { code, lines } = runSteps(`
    slow() { step echo 'slow 1'; until [[ -f $work/quick ]]; do sleep 0.01; done; step echo 'slow 2'; }
    quick() { step echo quick; touch $work/quick; }
    side_by_side slow quick`);
  expect(lines).toEqual([
    '== side by side: slow quick',
    '== echo slow 1',
    'slow 1',
    '== echo slow 2',
    'slow 2',
    '== echo quick',
    'quick',
    '0 passed, 0 failed, 0 skipped',
  ]);
  expect(code).toBe(0);
});

test('a step that fails or is skipped in a parallel function is counted, and the others continue', () => {
  const { code, lines } = runSteps(`
    cannot() { return 75; }
    may_not() { echo 'only root may' >$SKIP_REASON; return 75; }
    one() { step false; step echo after; }
    other() { step cannot; step may_not; run_tests may_not; }
    side_by_side one other && step echo last`);
  expect(lines).toEqual(expect.arrayContaining(['after', 'last']));
  expect(lines.slice(-5)).toEqual([
    'skipped: cannot: could not be done on this machine',
    'skipped: may_not: only root may',
    'skipped: may_not: only root may',
    'failed: false',
    '0 passed, 1 failed, 3 skipped',
  ]);
  expect(code).toBe(1);
});

test('a function that is killed counts as a failure, with the results of its earlier steps', () => {
  const { code, lines } = runSteps(`
    killed() { step false; kill -KILL $BASHPID; }
    other() { step true; }
    side_by_side killed other || echo 'something ended early'`);
  expect(lines).toContain('something ended early');
  expect(lines.slice(-3)).toEqual([
    'failed: false',
    'failed: killed ended with 137',
    '0 passed, 2 failed, 0 skipped',
  ]);
  expect(code).toBe(1);
});

test('tests are counted by their report, and a command that ends without one has failed', () => {
  const report = JSON.stringify({
    testResults: [
      {
        name: 'a.test.ts',
        status: 'failed',
        assertionResults: [
          { fullName: 'one', status: 'passed' },
          { fullName: 'two', status: 'skipped' },
          {
            fullName: 'three',
            status: 'failed',
            failureMessages: ['Error: timed out in 5 s\n    at three.ts:1:2'],
          },
        ],
      },
      { name: 'b.test.ts', status: 'failed', message: 'Error: no server', assertionResults: [] },
    ],
  });
  const { code, lines } = runSteps(`
    write() { local option=\${*: -1}; echo '${report}' >"\${option#*=}"; return 1; }
    nothing() { :; }
    tests() { run_tests write; run_tests nothing; }
    side_by_side tests`);
  expect(lines.slice(-6)).toEqual([
    'skipped: write: two',
    'nothing ended without a report',
    'failed: three: Error: timed out in 5 s',
    'failed: b.test.ts: Error: no server',
    'failed: nothing',
    '1 passed, 3 failed, 1 skipped',
  ]);
  expect(code).toBe(1);
});
