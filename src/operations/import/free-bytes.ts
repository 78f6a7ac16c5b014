/**
 * Frees the memory of bytes that nobody uses any more. Garbage collection would free it too. But V8 counts such memory,
 * and would run a full collection for every few megabytes of an import (docs/decisions/0073-memory-of-imports.md).
 */
export function freeBytes({ buffer, byteLength }: Buffer): void {
  // Short buffers share their memory with others.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
