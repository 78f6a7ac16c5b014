/**
 * The promise's outcome, or a rejection after `waitMs`. An answer that lies in the socket already still counts: a
 * busy event loop is not a slow server, so the verdict waits until what has arrived was read.
 */
export function withDeadline<T>(work: Promise<T>, waitMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const expire = () => reject(new Error(`no answer in ${waitMs} ms`));
    const timer = setTimeout(() => setImmediate(expire), waitMs);
    timer.unref();
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
