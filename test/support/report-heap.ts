/** Loaded into a replica with `--expose-gc`: SIGUSR2 makes it collect its garbage and log what is left. */
process.on('SIGUSR2', () => {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  console.log(JSON.stringify({ level: 30, msg: 'heap', usedBytes: process.memoryUsage().heapUsed }));
});
