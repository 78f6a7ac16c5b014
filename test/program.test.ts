import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runProgram } from '../src/program.ts';
import { runHere } from './support/command.ts';
import { makeFolder, removeFolder } from './support/folders.ts';

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

test('an admin command refuses to make a database: it names the folder in which there is none', async () => {
  const folder = makeFolder('no-database');
  onTestFinished(() => removeFolder(folder));
  for (const dataDir of [join(folder, 'missing'), folder]) {
    const { code, output, errors } = await runHere(
      ['admin', 'invite', 'create', '--email', 'a@example.org'],
      {
        DATA_DIR: dataDir,
      },
    );
    expect([code, output]).toEqual([1, '']);
    expect(errors).toContain(`Database: ${dataDir}\n`);
    expect(errors).toContain(`there is no database in ${dataDir}: set DATA_DIR or DATABASE_URL`);
  }
  expect(readdirSync(folder)).toEqual([]);
});

test('an admin command names its database without the password', async () => {
  const url = 'postgres://ann:secret@localhost:1,[::1]:2/bookmarks?sslmode=disable&password=secret';
  const { errors } = await runHere(['admin', 'user', 'list'], { DATABASE_URL: url });
  expect(errors.split('\n')[0]).toBe('Database: localhost:1,[::1]:2/bookmarks');
  expect(errors).not.toContain('secret');
});
