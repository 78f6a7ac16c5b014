/** For each owner, a promise that ends with the last function that runs or waits. */
const lastTurns = new WeakMap<object, Promise<unknown>>();

/** Calls one function at a time for each owner, in the order of the calls. */
export function inTurn<T>(owner: object, run: () => Promise<T>): Promise<T> {
  const running = (lastTurns.get(owner) ?? Promise.resolve()).then(run);
  lastTurns.set(
    owner,
    running.catch(() => {}),
  );
  return running;
}
