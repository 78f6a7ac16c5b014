import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OUTCOMES, requireSuccess } from '../src/store/outcomes.ts';

test('TypeScript knows exactly the outcomes that the SQL functions return', () => {
  const folder = join(import.meta.dirname, '../sql/functions');
  // These functions sign in users, link identities, or claim imports. Their outcomes are not errors of a request.
  const others = ['first-sign-in.sql', 'link-identity.sql', 'sign-in-by-provider.sql', 'claim-import.sql'];
  const texts = readdirSync(folder)
    .filter((name) => name.endsWith('.sql') && !others.includes(name))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  // Matches `outcome := 'x'`, `outcome := case … 'x' …`, and `return 'x'`.
  const assigned = texts.flatMap((text) => text.match(/outcome := [^;]*;|return '[a-z_]+';/g) ?? []);
  const returned = assigned.flatMap((text) => [
    ...text.matchAll(/(?<!case p_kind when |limit_of\()'([a-z_]+)'/g),
  ]);
  expect([...new Set(returned.map(([, name]) => name))].sort()).toEqual([...OUTCOMES].sort());
});

test('an unknown outcome causes an error that names it', () => {
  const rows = [{ outcome: 'unheard_of' as never }];
  expect(() => requireSuccess(rows)).toThrow('SQL returned the unknown outcome unheard_of');
});
