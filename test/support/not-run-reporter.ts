import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';

/** At the end of the run, prints every test that was skipped on this machine. Prints none if `-t` selects tests. */
export class NotRunReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#vitest?.config.testNamePattern !== undefined) return;
    const names = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => `${module.relativeModuleId}: ${describe(test)}`),
    );
    if (names.length > 0) console.log(['\nNot run on this machine:', ...names].join('\n  '));
  }
}

/** Returns the name of a test, and the reason why it was skipped if the test gives one. */
function describe(test: TestCase): string {
  const result = test.result();
  return result.state === 'skipped' && result.note !== undefined
    ? `${test.fullName} (${result.note})`
    : test.fullName;
}
