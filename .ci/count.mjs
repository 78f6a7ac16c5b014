// Reads vitest's JSON reports, says what failed or did not run, and prints the line that ends a run. Plain JavaScript,
// since it runs on the machine's own Node. A test that was left out counts as failed: here everything runs.
import { readFileSync } from 'node:fs';

const [report, longReport, ...failedSteps] = process.argv.slice(2);

const failures = [];
let passed = 0;
countTests('npm test', report);
countTests('npm run test:long', longReport);
// What is left of them has no tests to name.
for (const step of failedSteps) failures.push(`failed: ${step}`);

for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** Counts the tests that a command ran. Its step failed for what its tests say; without a failed test, for something else. */
function countTests(command, path) {
  const files = readReport(command, path);
  const tests = files.flatMap((file) => file.assertionResults);
  const failed = [
    ...tests.filter((test) => test.status !== 'passed').map((test) => `${test.status}: ${test.fullName}`),
    // A file that cannot be loaded, or whose hooks fail, has no failed test to show.
    ...files
      .filter(
        (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
      )
      .map((file) => `failed: ${file.name}`),
  ];
  const step = failedSteps.findIndex((each) => each.startsWith(`${command} `));
  if (step >= 0) failedSteps.splice(step, 1);
  if (failed.length === 0 && (step >= 0 || tests.length === 0)) failed.push(`failed: ${command}`);
  passed += tests.filter((test) => test.status === 'passed').length;
  failures.push(...failed);
}

function readReport(command, path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).testResults;
  } catch {
    console.log(`${command} ended without a report`);
    return [];
  }
}
