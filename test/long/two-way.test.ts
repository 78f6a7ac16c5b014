// Runs test/two-way.test.ts for about a minute.
process.env.TEST_ROUNDS ??= '200';
await import('../two-way.test.ts');
