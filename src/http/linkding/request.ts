import type { FastifyReply } from 'fastify';
import type { RunEndpoint } from '../run-endpoint.ts';

/** A tag with the time when it was created, which `/tags/list` does not return. */
export interface DatedTag {
  id: number;
  name: string;
  created_at: string;
}

/** What a handler gets for one request of a linkding client. */
export interface LinkdingRequest {
  run: RunEndpoint;
  /** Returns all tags of the account in the order of their names. */
  listTags(): Promise<DatedTag[]>;
  /** The parameters of the query string that are not empty. The last value counts if one was sent twice. */
  query: Record<string, string>;
  /** The id in the path; `NaN` if the path has none. */
  id: number;
  body: unknown;
  /** Returns the url of the requested list, with `range` instead of the requested range. */
  linkTo(range: Range): string;
  reply: FastifyReply;
}

interface Range {
  offset: number;
  limit: number;
}

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;
const MAX_OFFSET = 1_000_000_000;
const INTEGER = /^\d+$/;

/** Reads `limit` (at most 10,000, default 100) and `offset`. Ignores invalid values, as linkding does. */
export function readRange(query: Record<string, string>): Range {
  const limit = readInteger(query.limit) || DEFAULT_LIMIT;
  return {
    offset: Math.min(readInteger(query.offset), MAX_OFFSET),
    limit: Math.min(limit, MAX_LIMIT),
  };
}

const readInteger = (text = ''): number => (INTEGER.test(text) ? Number(text) : 0);

/** Returns the first fields of a page of results, with links to the previous and the next page. */
export const formatPage = (
  { linkTo }: Pick<LinkdingRequest, 'linkTo'>,
  { offset, limit }: Range,
  count: number,
) => ({
  count,
  next: offset + limit < count ? linkTo({ offset: offset + limit, limit }) : null,
  previous: offset > 0 ? linkTo({ offset: Math.max(0, offset - limit), limit }) : null,
});
