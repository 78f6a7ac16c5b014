import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testNamesIn } from './documents/test-names.ts';
import { MUTANTS } from './mutants/list.ts';

/**
 * Checks that the list of `npm run test:mutants` fits the code and the tests. Only that command shows whether a
 * mutation is caught.
 */

const read = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8');

/**
 * Returns whether a test of the file has this title. In the name of a parameterized test, a placeholder matches any
 * text.
 */
function hasTest(path: string, title: string): boolean {
  return [...testNamesIn(read(path))].some((name) => {
    const literals = name.split(/%[a-z]|\$\{[^}]*\}|\$\w+/).map((text) => RegExp.escape(text));
    return new RegExp(`^${literals.join('.*')}$`, 's').test(title);
  });
}

test('each mutation applies exactly once, and the test that catches it exists', () => {
  const faults = MUTANTS.flatMap(({ file, from, caughtBy }) => {
    const [path, title, ...rest] = caughtBy.split(' › ');
    const name = `${file}: ${from.trim()}`;
    if (read(file).split(from).length !== 2) return [`does not apply exactly once: ${name}`];
    return rest.length === 0 && hasTest(path!, title!) ? [] : [`no such test: ${caughtBy}`];
  });
  expect(faults).toEqual([]);
});
