/** A file that is none that can be imported; its message says why, and what to do. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}
