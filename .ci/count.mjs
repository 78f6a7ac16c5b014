// Reads vitest's JSON report, says what failed or did not run, and prints the line that ends a run. Plain JavaScript,
// since it runs on the machine's own Node. A test that was left out counts as failed: here everything runs.
import { readFileSync } from 'node:fs';

const [reportPath, ...failedSteps] = process.argv.slice(2);

let files = [];
try {
  files = JSON.parse(readFileSync(reportPath, 'utf8')).testResults;
} catch {
  console.log('the tests ended without a report');
}

const tests = files.flatMap((file) => file.assertionResults);
const passed = tests.filter((test) => test.status === 'passed').length;
const failures = [
  ...tests.filter((test) => test.status !== 'passed').map((test) => `${test.status}: ${test.fullName}`),
  // A file that cannot be loaded, or whose hooks fail, has no failed test to show.
  ...files
    .filter(
      (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
    )
    .map((file) => `failed: ${file.name}`),
];
for (const step of failedSteps) {
  // Where tests failed they are named above; without any, it was an error outside of them.
  if (!step.startsWith('npm test') || failures.length === 0) failures.push(`failed: ${step}`);
}
if (passed === 0 && failures.length === 0) failures.push('failed: npm test');

for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;
