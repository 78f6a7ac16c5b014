/**
 * Loaded into a replica. SIGUSR2 makes it throw an error that nobody catches, and SIGPIPE makes it reject a promise
 * that nobody awaits.
 */
process.on('SIGUSR2', () => {
  setImmediate(() => {
    throw new Error('a fault made by a test');
  });
});
process.on('SIGPIPE', () => void Promise.reject(new Error('a fault made by a test')));
