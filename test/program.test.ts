import { expect, test } from 'vitest';
import { runProgram } from '../src/program.ts';

test('an unexpected fault is printed with its cause, for the log of a Job', async () => {
  let printed = '';
  const code = await runProgram(['admin', 'user', 'list'], {
    readConfig: () => {
      throw new Error('0005-half-done failed', { cause: new Error('division by zero') });
    },
    out: () => {},
    err: (text) => {
      printed += text;
    },
  });
  expect(code).toBe(1);
  expect(printed).toContain('0005-half-done failed');
  expect(printed).toContain('division by zero');
  expect(printed).not.toContain('[object');
});
