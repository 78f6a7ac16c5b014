import { randomUUID } from 'node:crypto';
import type { StagedImport } from '../../store/staged-imports.ts';

/** A staged import's name in the queue: it carries the user, so that every look-up names the user. */
export const jobIdOf = ({ userId, id }: StagedImport): string => `${userId}-${id}`;

/** The staged import that a job is about; undefined for a name that is none of ours. */
export function parseJobId(jobId: string): StagedImport | undefined {
  const match = /^(\d{1,16})-([0-9a-f-]{36})$/.exec(jobId);
  return match === null ? undefined : { userId: Number(match[1]), id: match[2]! };
}

/** A new import of a user, not yet begun. */
export const newImport = (userId: number): StagedImport => ({ userId, id: randomUUID() });
