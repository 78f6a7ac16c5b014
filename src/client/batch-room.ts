import { BOUNDS } from '../domain/bounds.ts';
import type { BatchOperation } from '../domain/resources.ts';

/** The limits of a body of `/bookmarks/batch` (docs/contract.md, section 1), less some room for its other fields. */
const MAX_BYTES = BOUNDS.batchBytes - 1_000;
const MAX_SEPARATORS = 50_000 - 10;

/** Counts what still fits into a batch. */
export class BatchRoom {
  readonly #encoder = new TextEncoder();
  #bytes = MAX_BYTES;
  #separators = MAX_SEPARATORS;
  #tags: number = BOUNDS.tagsPerBatch;

  /** Takes the room for an operation. Returns false if there is not enough, except for the first operation. */
  take(operation: BatchOperation): boolean {
    const isFirst = this.#bytes === MAX_BYTES;
    const text = JSON.stringify(operation);
    // Adds one for the comma after the operation.
    this.#bytes -= this.#encoder.encode(text).length + 1;
    this.#separators -= (text.match(/[,[{]/g)?.length ?? 0) + 1;
    this.#tags -= operation.do === 'delete' ? 0 : (operation.tags?.length ?? 0);
    return isFirst || Math.min(this.#bytes, this.#separators, this.#tags) >= 0;
  }
}
