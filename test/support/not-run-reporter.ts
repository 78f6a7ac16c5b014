import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** Prints at the end of the run every test that this machine did not run. */
export class NotRunReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => `${module.relativeModuleId}: ${describe(test)}`),
    );
    if (names.length > 0) console.log(['\nNot run on this machine:', ...names].join('\n  '));
  }
}

/** The name of a test, and why it was skipped where it says so. */
function describe(test: TestCase): string {
  const result = test.result();
  return result.state === 'skipped' && result.note !== undefined
    ? `${test.fullName} (${result.note})`
    : test.fullName;
}
