import { expect, test } from 'vitest';
import { createSecret, formatToken, parseToken } from '../src/domain/tokens.ts';
import { KnownPrincipals } from '../src/http/known-principals.ts';

// Tests what a replica remembers about valid tokens. It remembers a limited number of them, and each for a limited
// time.

const NOW_MS = 1_000_000;

/** Makes a token for a user, and parses the token as if a client had sent it. */
function present(userId: number) {
  const { secret } = createSecret();
  return parseToken(formatToken('api', userId, secret))!;
}

const principalOf = (token: ReturnType<typeof present>) =>
  ({ ...token, scope: 'read', isPremium: false }) as Parameters<KnownPrincipals['add']>[0];

test('a principal is remembered for a minute, so a change of tier takes effect within a minute', () => {
  const principals = new KnownPrincipals();
  const token = present(1);
  principals.add(principalOf(token), NOW_MS);
  expect(principals.find(token, NOW_MS + 59_999)).toMatchObject({ userId: 1, scope: 'read' });
  expect(principals.find(token, NOW_MS + 60_000)).toBeUndefined();
  expect(principals.find(token, NOW_MS)).toBeUndefined();
});

test('the number of remembered principals is limited, and the oldest are forgotten first', () => {
  const principals = new KnownPrincipals({ capacity: 100 });
  const tokens = Array.from({ length: 250 }, (_, n) => present(n + 1));
  for (const token of tokens) principals.add(principalOf(token), NOW_MS);
  const isKnown = tokens.map((token) => principals.find(token, NOW_MS) !== undefined);
  expect(isKnown).toEqual(tokens.map((_, n) => n >= 150));
});
