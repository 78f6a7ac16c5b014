// Reads vitest's JSON reports, lists failed and skipped tests, and prints how many passed, failed and were skipped.
// Plain JavaScript, because it runs on the Node that is installed on the machine, which may be older than 26.
//
//   count.mjs --report 'npm test'=FILE … --failed 'npm run check' … --skipped 'why a step was not done' …
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const list = { type: 'string', multiple: true, default: [] };
const { values } = parseArgs({ options: { report: list, failed: list, skipped: list } });

let passed = 0;
const failures = [];
let skippedCount = 0;
const failedSteps = new Set(values.failed);
for (const entry of values.report) {
  const [command, path] = entry.split('=');
  countTests(command, path);
}
for (const step of failedSteps) failures.push(step);

for (const step of values.skipped) reportSkipped(step, 1);
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${passed} passed, ${failures.length} failed, ${skippedCount} skipped`);
process.exitCode = failures.length === 0 ? 0 : 1;

/**
 * Counts the tests of a command. A command counts as one failure if it ran no test, or failed although no test failed.
 */
function countTests(command, path) {
  const files = readReport(command, path);
  const tests = files.flatMap((file) => file.assertionResults);
  const failed = [
    ...tests
      .filter((test) => test.status === 'failed')
      .map((test) => withReason(test.fullName, test.failureMessages?.[0])),
    // If a file cannot be loaded, or one of its hooks fails, the report contains no failed test of the file. The file
    // then counts as one failure.
    ...files
      .filter(
        (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
      )
      .map((file) => withReason(file.name, file.message)),
  ];
  if (failed.length === 0 && (tests.length === 0 || failedSteps.has(command))) failed.push(command);
  failedSteps.delete(command);
  failures.push(...failed);
  passed += tests.filter((test) => test.status === 'passed').length;
  const left = tests.filter((test) => test.status !== 'passed' && test.status !== 'failed');
  if (left.length > 0 && left.length === tests.length) {
    reportSkipped(`${command}: all ${left.length} tests; its output says what they need`, left.length);
  } else {
    for (const test of left) reportSkipped(`${command}: ${test.fullName}`, 1);
  }
}

/** Adds the first line of an error to the name of a test or file, because the output above may be cut off. */
function withReason(name, error = '') {
  const [reason] = error.trim().split('\n');
  return reason === '' ? name : `${name}: ${reason.slice(0, 300)}`;
}

function reportSkipped(what, tests) {
  skippedCount += tests;
  console.log(`skipped: ${what}`);
}

function readReport(command, path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).testResults;
  } catch {
    console.log(`${command} ended without a report`);
    return [];
  }
}
