/**
 * The limits of docs/contract.md, sections 2.5 and 8 (decision 9). Lengths are in Unicode code points. The limits of a
 * bookmark's own fields are in `BOOKMARK_FIELDS`.
 */
export const BOUNDS = {
  /** Also the limit of the names of API tokens, sessions and passkeys. */
  tagName: 255,
  tagsPerBookmark: 100,
  tagsPerUser: 10_000,
  tagPaths: 10,
  apiTokensPerUser: 50,
  passkeysPerUser: 20,
  query: 1_000,
  phrases: 10,
  alternatives: 10,
  importEntries: 100_000,
  /** The bytes of an import's body. */
  importBytes: 67_108_864,
  idsPerRequest: 500,
  operationsPerBatch: 500,
  tagsPerBatch: 10_000,
  /** The bytes of a batch's body. */
  batchBytes: 1_048_576,
  idempotencyKey: 255,
} as const;

/** The sort orders of a search. The first is the default. The SQL function `find_matches` knows only these. */
export const SORTS = ['newest', 'oldest', 'created', 'created_oldest', 'updated', 'title'] as const;

export type Sort = (typeof SORTS)[number];
