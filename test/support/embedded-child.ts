import { attachEmbeddedPostgres, openEmbeddedPostgres } from '../../src/embedded/postgres.ts';

// Opens a data folder as a service or as a command would, in a process that tests can kill. Prints one JSON object per
// line. The first line names the opened server, or the reason why none could be opened. Each SIGINT adds a line.
// SIGTERM shuts the server down gracefully.

const [dataDir = '', purpose = 'service'] = process.argv.slice(2);
const log = { info: () => {}, warn: () => {}, error: () => {} };
const say = (fact: object) => process.stdout.write(`${JSON.stringify(fact)}\n`);

process.on('SIGINT', () => say({ interrupted: true }));
try {
  const open = purpose === 'service' ? openEmbeddedPostgres : attachEmbeddedPostgres;
  const server = await open({ dataDir, log });
  process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
  say({ url: server.url, serverPid: server.pid });
  // Keeps this process alive if the server belongs to another process.
  setInterval(() => {}, 60_000);
} catch (error) {
  say({ refusal: (error as Error).message });
  process.exitCode = 1;
}
