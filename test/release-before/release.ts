import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SchemaFiles } from '../../src/store/schema-files.ts';

/** What the release before expects of a database: written by `record.ts`, read by tests. */

export const RELEASE_FILE = join(import.meta.dirname, '../samples/release-before.json');

/** A statement as the driver sent it, and how many rows came. */
export interface RecordedCall {
  query: string;
  /** Bytes are `{ hex }`. */
  values: unknown[];
  rows: number;
}

export interface ReleaseBefore {
  /** `unreleased` until there was one: nobody has to live with its schema. */
  release: string;
  schema: SchemaFiles;
  calls: RecordedCall[];
}

export const encode = (value: unknown): unknown =>
  value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value;

export const decode = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'hex' in value
    ? Buffer.from(value.hex as string, 'hex')
    : value;

export const readRelease = (): ReleaseBefore => JSON.parse(readFileSync(RELEASE_FILE, 'utf8'));
