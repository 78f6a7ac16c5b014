export interface Mutant {
  file: string;
  /** Occurs exactly once in the file. */
  from: string;
  to: string;
  /** The test files that must catch it. */
  tests: readonly string[];
}

export const MUTANTS: readonly Mutant[] = [
  {
    file: 'sql/functions/find-response.sql',
    from: "interval '24 hours'",
    to: "interval '12 hours'",
    tests: ['test/idempotency.test.ts'],
  },
  {
    file: 'sql/functions/create-own-token.sql',
    from: "kind = 'api' and expires_at > now()\n  ) >=",
    to: "kind = 'api'\n  ) >=",
    tests: ['test/own-tokens.test.ts'],
  },
  {
    file: 'sql/functions/revoke-other-sessions.sql',
    from: 'token_hash <> p_token_hash and expires_at > now()',
    to: 'token_hash <> p_token_hash',
    tests: ['test/own-tokens.test.ts'],
  },
  {
    file: 'src/cli/display-text.ts',
    from: '\\u202a-\\u202e\\u2066-\\u2069]+/g',
    to: '\\u202a-\\u202e]+/g',
    tests: ['test/formats.test.ts'],
  },
  {
    file: 'src/formats/entry.ts',
    from: 'Date.parse(isLocal ?',
    to: 'Date.parse(isLocal && false ?',
    tests: ['test/formats.test.ts'],
  },
  {
    file: 'src/formats/netscape.ts',
    from: "if (this.#target === 'description') this.text('\\n');",
    to: '',
    tests: ['test/formats.test.ts'],
  },
  {
    file: 'src/client/merge.ts',
    from: 'if_updated_at: row.updated_at',
    to: 'if_updated_at: undefined',
    tests: ['test/two-way.test.ts'],
  },
  {
    file: 'src/client/merge.ts',
    from: 'if (theirs !== change.from) {',
    to: 'if (theirs === undefined) {',
    tests: ['test/two-way.test.ts'],
  },
  {
    file: 'src/client/push.ts',
    from: ', { ...options, idempotencyKey: key }',
    to: ', options',
    tests: ['test/two-way.test.ts'],
  },
  {
    file: 'src/client/push.ts',
    from: 'const write = await pushing.store.readNext();',
    to: 'const write = (await pushing.store.readOutbox()).at(-1);',
    tests: ['test/two-way.test.ts'],
  },
  {
    file: 'sql/functions/sweep-tokens.sql',
    from: " and expires_at > '-infinity'",
    to: '',
    tests: ['test/suspension.test.ts'],
  },
  {
    file: 'sql/functions/open-session.sql',
    from: 'v_suspended_at is not null',
    to: 'false',
    tests: ['test/suspension.test.ts'],
  },
  {
    file: 'src/coordination/sliding-window.lua',
    from: 'isAdmitted = isAdmitted and log.live < log.limit',
    to: 'isAdmitted = log.live < log.limit',
    tests: ['test/rate-limit.test.ts'],
  },
  {
    file: 'sql/functions/edit-bookmark.sql',
    from: 'v_updated_at <> p_if_updated_at',
    to: 'false',
    tests: ['test/spec-4-2-conditional.test.ts'],
  },
  {
    file: 'sql/functions/delete-bookmark.sql',
    from: 'v_updated_at <> p_if_updated_at',
    to: 'false',
    tests: ['test/spec-4-2-conditional.test.ts'],
  },
  {
    file: 'sql/functions/next-updated-at.sql',
    from: "interval '1 millisecond'",
    to: "interval '0'",
    tests: ['test/spec-4-2-conditional.test.ts'],
  },
  {
    file: 'sql/functions/move-to-trash.sql',
    from: '(deleted_at, id) <= (v_last_at, v_last_id)',
    to: '(deleted_at, id) < (v_last_at, v_last_id)',
    tests: ['test/spec-4-6-trash.test.ts'],
  },
  {
    file: 'sql/functions/suspend-user.sql',
    from: 'coalesce(a.suspended_at, v_at)',
    to: 'v_at',
    tests: ['test/suspension.test.ts'],
  },
  {
    file: 'sql/functions/sign-in-by-passkey.sql',
    from: 'counter < p_counter or',
    to: 'counter <= p_counter or',
    tests: ['test/passkeys.test.ts'],
  },
  {
    file: 'sql/functions/rename-tag.sql',
    from: ' and id <> all (v_ids)',
    to: '',
    tests: ['test/tag-paths.test.ts'],
  },
  {
    file: 'src/http/linkding/routes.ts',
    from: 'if (bodyReader !== undefined) throw',
    to: 'if (false) throw',
    tests: ['test/linkding.test.ts'],
  },
  {
    file: 'src/operations/import/preparers.ts',
    from: '      clearTimeout(timer);\n      if (message',
    to: '      if (message',
    tests: ['test/import-body.test.ts'],
  },
];
