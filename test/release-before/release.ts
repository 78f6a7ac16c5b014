import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SchemaFiles } from '../../src/store/schema-files.ts';

/** What the release before expects of a database: written by `record.ts`, read by tests. */

export const RELEASE_FILE = join(import.meta.dirname, '../samples/release-before.json');

/** A statement as the driver sent it, and how many rows came. */
export interface RecordedCall {
  query: string;
  /** Bytes are `{ hex }`; an id that an earlier call gave is `{ from }`: the call, and the way to it in its rows. */
  values: unknown[];
  rows: number;
}

export interface ReleaseBefore {
  /** `unreleased` until there was one: nobody has to live with its schema. */
  release: string;
  schema: SchemaFiles;
  calls: RecordedCall[];
}

export const readRelease = (): ReleaseBefore => JSON.parse(readFileSync(RELEASE_FILE, 'utf8'));

type Way = (string | number)[];

/** Ids are made from time, so that none comes twice and no other number is as large. */
const isId = (value: unknown): value is number => typeof value === 'number' && value > 1e9;

/** A JSON text, and a token's id for the operator, as what it holds; anything else as it is. */
function parseText(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (/^\d+-\d+$/.test(value)) return value.split('-').map(Number);
  if (!/^[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** The rows of calls, in which ids of later calls are found. */
export class SeenRows {
  readonly #rows: (readonly unknown[])[] = [];
  readonly #wayOfId = new Map<number, Way>();

  add(rows: readonly unknown[]): void {
    this.#rows.push(rows);
    this.#visit(rows, [this.#rows.length - 1]);
  }

  #visit(value: unknown, way: Way): void {
    const found = parseText(value);
    if (isId(found) && !this.#wayOfId.has(found)) this.#wayOfId.set(found, way);
    if (typeof found !== 'object' || found === null) return;
    for (const [step, inner] of Object.entries(found)) this.#visit(inner, [...way, step]);
  }

  encode(value: unknown): unknown {
    if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') };
    if (!isId(value) || value === Number.MAX_SAFE_INTEGER) return value;
    const from = this.#wayOfId.get(value);
    if (from === undefined) throw new Error(`${value} came from no call`);
    return { from };
  }

  decode(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if ('hex' in value) return Buffer.from(value.hex as string, 'hex');
    if (!('from' in value)) return value;
    let found: unknown = this.#rows;
    for (const step of value.from as Way)
      found = (parseText(found) as Record<string | number, unknown>)[step];
    return Number(found);
  }
}
