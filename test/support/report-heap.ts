/**
 * This file is loaded into a replica that runs with `--expose-gc`. On SIGUSR2 it collects garbage and logs the size of
 * the heap.
 */
process.on('SIGUSR2', () => {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  console.log(JSON.stringify({ level: 30, msg: 'heap', usedBytes: process.memoryUsage().heapUsed }));
});
