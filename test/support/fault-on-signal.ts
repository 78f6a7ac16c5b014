/**
 * This file is loaded into a replica. On SIGUSR2 it throws an error that nobody catches, and on SIGPIPE it rejects a
 * promise that nobody awaits.
 */
process.on('SIGUSR2', () => {
  setImmediate(() => {
    throw new Error('a fault made by a test');
  });
});
process.on('SIGPIPE', () => void Promise.reject(new Error('a fault made by a test')));
