import { attachEmbeddedPostgres, openEmbeddedPostgres } from '../../src/embedded/postgres.ts';

// A service (or a command) on the data folder given, as a process of its own that tests can kill. It writes a JSON
// object per line: what it opened, or why not; and each SIGINT. SIGTERM stops it in order.

const [dataDir = '', purpose = 'service'] = process.argv.slice(2);
const log = { info: () => {}, warn: () => {}, error: () => {} };
const say = (fact: object) => process.stdout.write(`${JSON.stringify(fact)}\n`);

process.on('SIGINT', () => say({ interrupted: true }));
try {
  const open = purpose === 'service' ? openEmbeddedPostgres : attachEmbeddedPostgres;
  const server = await open({ dataDir, log });
  process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
  say({ url: server.url, serverPid: server.pid });
  // The server's own handle keeps only its starter alive.
  setInterval(() => {}, 60_000);
} catch (error) {
  say({ refusal: (error as Error).message });
  process.exitCode = 1;
}
