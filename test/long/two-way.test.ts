// Runs test/two-way.test.ts for about two minutes.
process.env.TEST_ROUNDS ??= '350';
await import('../two-way.test.ts');
