import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import type { JsonTestResults } from 'vitest/node';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';

/**
 * How a test ended. `did not run` also means that no test has this name, or that the test cannot run on this machine.
 */
interface Outcome {
  status: 'passed' | 'failed' | 'did not run';
  /** The reason for a failure, or what Vitest printed if the test did not run. */
  message: string;
}

const ROOT = join(import.meta.dirname, '../..');
const LEFT_OUT = new Set(['.git', 'node_modules', 'dist']);

/** The time limit of a run, which ends a run that hangs. Each test has a much shorter limit of its own. */
const LIMIT_MS = 1_200_000;

/** Options for tests that probably fail. Many of them would otherwise wait for minutes for what never happens. */
export const SHORT_LIMITS = ['--testTimeout=60000', '--expect.poll.timeout=25000'];

/** A copy of the working tree, in the folder of this run. A mutation changes a file of the copy. */
export class ProjectCopy {
  readonly #folder = makeFolder('mutants', runDir());
  readonly #databaseUrl: string;

  /** Makes a copy whose tests use the Postgres at this url. */
  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
    cpSync(ROOT, this.#folder, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(ROOT, path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(this.#folder, 'node_modules'));
  }

  /**
   * Replaces a text that occurs exactly once in the file. Returns a function that undoes the change. If the text does
   * not occur exactly once, changes nothing and returns undefined.
   */
  replaceOnce(file: string, from: string, to: string): (() => void) | undefined {
    const path = join(this.#folder, file);
    const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
    if (before.split(from).length !== 2) return undefined;
    writeFileSync(
      path,
      before.replace(from, () => to),
    );
    return () => writeFileSync(path, before);
  }

  /** Runs only these tests, which are named `file › title`, with `moreOptions` of Vitest. Returns the outcome of each. */
  async runTests(
    names: readonly string[],
    moreOptions: readonly string[] = [],
  ): Promise<Map<string, Outcome>> {
    const parsed = names.map((name) => name.split(' › ') as [file: string, title: string]);
    const report = join(this.#folder, 'mutants-report.json');
    rmSync(report, { force: true });
    const pattern = `(?:^| )(?:${parsed.map(([, title]) => RegExp.escape(title)).join('|')})$`;
    const options = [...moreOptions, '-t', pattern, '--reporter=json', `--outputFile=${report}`];
    const output = await this.#runVitest([...options, ...new Set(parsed.map(([file]) => file))]);
    const results: JsonTestResults['testResults'] = existsSync(report)
      ? JSON.parse(readFileSync(report, 'utf8')).testResults
      : [];
    return new Map(
      names.map((name, n) => {
        const [file, title] = parsed[n]!;
        const tests = results
          .filter((each) => each.name === join(this.#folder, file))
          .flatMap(({ assertionResults }) => assertionResults)
          .filter((test) => test.title === title);
        return [name, judge(tests, output)];
      }),
    );
  }

  async #runVitest(args: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
      cwd: this.#folder,
      env: {
        ...process.env,
        TEST_DATABASE_URL: this.#databaseUrl,
        NODE_COMPILE_CACHE: join(this.#folder, '.compile-cache'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
    });
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return out + err;
  }
}

/**
 * Combines the outcomes of all tests with the same name. If one of them failed, the outcome is a failure. If all of
 * them passed, it is a success.
 */
function judge(tests: JsonTestResults['testResults'][number]['assertionResults'], output: string): Outcome {
  const failed = tests.filter(({ status }) => status === 'failed');
  if (failed.length > 0)
    return { status: 'failed', message: failed.flatMap(({ failureMessages }) => failureMessages).join('\n') };
  const isPassed = tests.length > 0 && tests.every(({ status }) => status === 'passed');
  return isPassed ? { status: 'passed', message: '' } : { status: 'did not run', message: output };
}
