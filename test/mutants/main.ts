import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import type { JsonTestResults } from 'vitest/node';
import { MUTANTS } from './list.ts';

/**
 * Applies each mutation of the list to a copy of the working tree, and runs the tests that must catch it. Fails if one
 * survives or no longer applies. `--part 3/10` runs every tenth, from the third.
 */

const { values } = parseArgs({ options: { part: { type: 'string', default: '1/1' } } });
const [part = 0, parts = 0] = values.part.split('/').map(Number);
if (!(Number.isInteger(part) && Number.isInteger(parts) && part >= 1 && part <= parts))
  throw new Error('--part is like 3/10');

const root = join(import.meta.dirname, '../..');
const copy = mkdtempSync(join(tmpdir(), 'mutants-'));
const LEFT_OUT = new Set(['.git', 'node_modules', 'dist']);

function runTests(files: readonly string[]): { status: number | null; failures: string[]; output: string } {
  const report = join(copy, 'mutants-report.json');
  rmSync(report, { force: true });
  const options = ['run', '--bail=1', '--reporter=json', `--outputFile=${report}`];
  const { status, stdout, stderr } = spawnSync('npx', ['vitest', ...options, ...files], {
    cwd: copy,
    encoding: 'utf8',
    timeout: 600_000,
  });
  return { status, failures: listFailures(report), output: stdout + stderr };
}

/** The failed tests of a report with their messages. None if the run ended without a report. */
function listFailures(report: string): string[] {
  if (!existsSync(report)) return [];
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as JsonTestResults;
  return testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
    .map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages?.join('\n')}`);
}

const faults: string[] = [];
try {
  cpSync(root, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(root, path)) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const mutants = MUTANTS.filter((_, index) => index % parts === part - 1);
  // Without mutations the tests must pass. Otherwise a failure would not show that a mutation was found. Without file
  // names, Vitest would run all tests.
  const files = [...new Set(mutants.flatMap(({ tests }) => tests))];
  const clean = files.length === 0 ? undefined : runTests(files);
  if (clean !== undefined && clean.status !== 0) {
    console.log(clean.output, ...clean.failures);
    throw new Error('the tests fail without any mutation');
  }
  for (const { file, from, to, tests } of mutants) {
    const path = join(copy, file);
    const text = readFileSync(path, 'utf8');
    const name = `${file}: ${from.trim()} => ${to.trim()}`;
    if (text.split(from).length !== 2) {
      faults.push(`does not apply exactly once: ${name}`);
      continue;
    }
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
    const { status, failures, output } = runTests(tests);
    writeFileSync(path, text);
    // If no test failed, the mutation was not found. For example, the database may not have started.
    if (status === 0) faults.push(`survived: ${name}`);
    else if (failures.length === 0) faults.push(`no test ran to its failure: ${name}\n${output}`);
    else console.log(`caught: ${name}`);
  }
  console.log(`${mutants.length} mutations, ${faults.length} not caught`);
} finally {
  rmSync(copy, { recursive: true, force: true });
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
