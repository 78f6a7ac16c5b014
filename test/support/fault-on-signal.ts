/** Loaded into a replica: SIGUSR2 makes it throw what nobody catches, SIGPIPE reject what nobody awaits. */
process.on('SIGUSR2', () => {
  setImmediate(() => {
    throw new Error('a fault made by a test');
  });
});
process.on('SIGPIPE', () => void Promise.reject(new Error('a fault made by a test')));
