/** The tests that hold on a sharded database too, each with a database of its own on every node. */
export const SHARDED_TESTS: readonly string[] = [
  'test/spec-4-1-account.test.ts',
  'test/spec-4-2-bookmarks.test.ts',
  'test/spec-4-2-changes.test.ts',
  'test/spec-4-2-get.test.ts',
  'test/spec-4-2-list.test.ts',
  'test/spec-4-2-search-options.test.ts',
  'test/spec-4-2-search.test.ts',
  'test/spec-4-2-several.test.ts',
  'test/spec-4-2-sync.test.ts',
  'test/spec-4-3-tags.test.ts',
  'test/spec-4-4-import-export.test.ts',
  'test/sync-never-misses.test.ts',
  'test/exact-caps.test.ts',
  'test/citus/migrate.test.ts',
  'test/citus/moves.test.ts',
];
