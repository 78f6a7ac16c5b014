import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import type { JsonTestResults } from 'vitest/node';
import { makeFolder } from '../support/folders.ts';
import { runDir } from '../support/run.ts';

/** How a test ended. `did not run` also means that no test has this name, or that this machine lacks what it needs. */
interface Outcome {
  status: 'passed' | 'failed' | 'did not run';
  /** Why it failed, or what Vitest printed if it did not run. */
  message: string;
}

const ROOT = join(import.meta.dirname, '../..');
const LEFT_OUT = new Set(['.git', 'node_modules', 'dist']);

/** Ends a run that hangs. Each test has a much shorter limit of its own. */
const LIMIT_MS = 1_200_000;

/** A copy of the working tree in the folder of the run, whose files may be changed. */
export class ProjectCopy {
  readonly #folder = makeFolder('mutants', runDir());
  readonly #databaseUrl: string;

  /** Tests use the Postgres at this url. */
  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
    cpSync(ROOT, this.#folder, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(ROOT, path)) });
    symlinkSync(join(ROOT, 'node_modules'), join(this.#folder, 'node_modules'));
  }

  /**
   * Replaces a text that occurs exactly once in the file. Returns a function that undoes it; undefined, and changes
   * nothing, if the text does not occur exactly once.
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

  /** Runs tests, named `file › title`, and no others. Returns the outcome of each. */
  async runTests(names: readonly string[]): Promise<Map<string, Outcome>> {
    const parsed = names.map((name) => name.split(' › ') as [file: string, title: string]);
    const report = join(this.#folder, 'mutants-report.json');
    rmSync(report, { force: true });
    const pattern = `(?:^| )(?:${parsed.map(([, title]) => RegExp.escape(title)).join('|')})$`;
    const options = ['-t', pattern, '--reporter=json', `--outputFile=${report}`];
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

/** A test has failed if at least one with its name failed, and has passed if all of them passed. */
function judge(tests: JsonTestResults['testResults'][number]['assertionResults'], output: string): Outcome {
  const failed = tests.filter(({ status }) => status === 'failed');
  if (failed.length > 0)
    return { status: 'failed', message: failed.flatMap(({ failureMessages }) => failureMessages).join('\n') };
  const isPassed = tests.length > 0 && tests.every(({ status }) => status === 'passed');
  return isPassed ? { status: 'passed', message: '' } : { status: 'did not run', message: output };
}
