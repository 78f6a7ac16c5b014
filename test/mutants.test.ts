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
 * Returns whether a test of this code has this title. In the name of a parameterized test, a placeholder matches any
 * text. If a name is only a placeholder, it matches every string in the code.
 */
function hasTest(code: string, title: string): boolean {
  const isWritten = ["'", '"', '`'].some((quote) => code.includes(`${quote}${title}${quote}`));
  return [...testNamesIn(code)].some((name) => {
    const literals = name.split(/%[a-z]|\$\{[^}]*\}|\$\w+/);
    if (literals.length > 1 && literals.every((text) => text === '')) return isWritten;
    return new RegExp(`^${literals.map((text) => RegExp.escape(text)).join('.*')}$`, 's').test(title);
  });
}

test('each mutation applies exactly once, and the test that catches it exists', () => {
  const faults = MUTANTS.flatMap(({ file, from, caughtBy }) => {
    const [path, title, ...rest] = caughtBy.split(' › ');
    const name = `${file}: ${from.trim()}`;
    if (read(file).split(from).length !== 2) return [`does not apply exactly once: ${name}`];
    return rest.length === 0 && hasTest(read(path!), title!) ? [] : [`no such test: ${caughtBy}`];
  });
  expect(faults).toEqual([]);
});

test('a title that no test has is not found, even if the name of a test is only a placeholder', () => {
  const code = "test.each(['of a list', 'other'])('%s', run);\ntest.each([1, 2])('the %s case', run);";
  expect(hasTest(code, 'of a list')).toBe(true);
  expect(hasTest(code, 'of no list')).toBe(false);
  expect(hasTest(code, 'the first case')).toBe(true);
  expect(hasTest(code, 'the first')).toBe(false);
});
