import type { Reporter, TestModule } from 'vitest/node';

/** Prints at the end of the run every test that this machine did not run. */
export class NotRunReporter implements Reporter {
  readonly #leftOut: readonly string[];

  /** `leftOut`: files that this machine cannot run, and so are not part of the run. */
  constructor(leftOut: readonly string[] = []) {
    this.#leftOut = leftOut;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => `${module.relativeModuleId}: ${test.fullName}`),
    );
    const names = [...skipped, ...this.#leftOut];
    if (names.length > 0) console.log(['\nNot run on this machine:', ...names].join('\n  '));
  }
}
