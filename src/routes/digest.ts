import { z } from 'zod';
import { integer, MAX_ID } from '../domain/fields.ts';
import { principalRoute } from '../http/route.ts';
import { readDigest } from '../store/digest.ts';
import { formatChangesCursor } from './cursor.ts';
import * as schemas from './response-schemas.ts';

/** Digests of the user's bookmarks, with which a client checks its copy: docs/contract.md, section 4.2. */

const sha256 = z
  .string()
  .meta({ examples: ['e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'] });

const positionId = z.int().min(0);

const digest = principalRoute({
  path: '/bookmarks/digest',
  scope: 'read',
  takesOwnPermits: true,
  summary: 'Read digests of the bookmarks, to check a copy of them',
  description:
    'Divides the bookmarks in a range of ids into parts of about equal count, and returns the count and the digest ' +
    'of each part in order. The range excludes `after_id` and includes `up_to_id`, and so does each part. A digest is ' +
    'the SHA-256, in lower-case hex, of the UTF-8 text of one line for each bookmark, by ascending id, joined by line ' +
    'feeds: the id, a blank, `updated_at`, a blank, and the ids of its tags in ascending order, joined by commas. ' +
    '`tags_digest` is the same over all tags: the id, a blank, and the name. Everything was true at `cursor`, which is ' +
    'a cursor of `/bookmarks/changes`. One digest of an account runs at a time.',
  body: z
    .object({
      parts: integer(1, 64, 16),
      after_id: integer(0, MAX_ID, 0),
      up_to_id: integer(0, MAX_ID, MAX_ID),
    })
    .check(({ value, issues }) => {
      if (value.after_id <= value.up_to_id) return;
      issues.push({ code: 'custom', message: 'is below after_id', path: ['up_to_id'], input: value });
    }),
  response: z.object({
    parts: z.array(
      z.object({ after_id: positionId, up_to_id: positionId, count: schemas.count, digest: sha256 }),
    ),
    tags_digest: sha256,
    cursor: z.string().meta({ examples: ['Mjo0Mjo2MTAwMDAwMDAwMDAwOjA6MDo0Mjo3'] }),
  }),
  async handle({ context: { database, digestPermits, requestPermits }, principal, body }) {
    const { userId } = principal;
    const range = { afterId: body.after_id, upToId: body.up_to_id };
    // A request that waits for another digest of the account takes none of the account's other permits.
    const { parts, tagsDigest, ...position } = await digestPermits.run(userId, () =>
      requestPermits.run(userId, () => readDigest(database, principal, range, body.parts)),
    );
    return `{"parts":[${parts}],"tags_digest":"${tagsDigest}","cursor":"${formatChangesCursor(userId, position)}"}`;
  },
});

export const digestRoutes = [digest];
