import type { Reporter, TestModule } from 'vitest/node';

/** Prints at the end of the run every test that this machine did not run. */
export class NotRunReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const names = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => `${module.relativeModuleId}: ${test.fullName}`),
    );
    if (names.length > 0) console.log(['\nNot run on this machine:', ...names].join('\n  '));
  }
}
