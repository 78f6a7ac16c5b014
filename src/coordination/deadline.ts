/**
 * The promise's outcome, or a rejection after `waitMs`. A busy event loop is not a slow server: the time runs from the
 * end of this turn, when what was asked is written, and an answer that lies in the socket already still counts, so the
 * verdict waits until what has arrived was read.
 */
export function withDeadline<T>(work: Promise<T>, waitMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const expire = () => reject(new Error(`no answer in ${waitMs} ms`));
    let timer: NodeJS.Timeout | undefined;
    const turn = setImmediate(() => {
      timer = setTimeout(() => setImmediate(expire), waitMs);
      timer.unref();
    });
    const stop = () => {
      clearImmediate(turn);
      clearTimeout(timer);
    };
    work.finally(stop).then(resolve, reject);
  });
}
