import type { ChangesPosition } from './changes.ts';
import type { Database } from './driver/database.ts';
import { requireValidToken } from './outcomes.ts';
import { type PrincipalKey, tokenIsValid } from './tokens.ts';

/** The digests of a user's bookmarks and tags, and the position in the changes at which they were true. */
export interface Digest extends ChangesPosition {
  /** The parts in order, as JSON texts separated by commas. */
  parts: string;
  tagsDigest: string;
}

/** A range of ids: `afterId` is excluded, `upToId` is included. */
export interface IdRange {
  afterId: number;
  upToId: number;
}

/**
 * Divides the bookmarks in a range of ids into at most `parts` parts and returns the digest of each part
 * (docs/contract.md, section 4.2), all from one snapshot of the database. Throws `INVALID_TOKEN`.
 */
export async function readDigest(
  db: Database,
  principal: PrincipalKey,
  { afterId, upToId }: IdRange,
  parts: number,
): Promise<Digest> {
  const rows = await db.at(principal.userId).read(
    (sql) => sql<({ valid: boolean } & Digest)[]>`
      select ${tokenIsValid(sql, principal)} as valid, digest.parts, digest.tags_digest as "tagsDigest",
        digest.epoch, digest.generation, digest.change, digest.bookmark_id as "bookmarkId", digest.tag_id as "tagId"
      from read_digest(
        p_user_id => ${principal.userId}, p_after => ${afterId}, p_last => ${upToId}, p_parts => ${parts}
      ) digest`,
  );
  return requireValidToken(rows);
}
