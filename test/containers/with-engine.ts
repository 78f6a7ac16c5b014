import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openRunFolder } from '../chaos/run-folder.ts';
import { needEngine, startEngine } from './engine.ts';
import { provideStandIns } from './stand-ins.ts';

/**
 * `node test/containers/with-engine.ts COMMAND …` runs a command whose tests start Postgres and Redis as containers of
 * an engine of our own. Exits with the command's exit code, or with 75 if no engine can run on this machine. It must run
 * as root on Debian.
 */
await needEngine(async () => {
  using _folder = openRunFolder();
  await using engine = await startEngine();
  await provideStandIns(engine, console.log);
  const [program, ...args] = process.argv.slice(2);
  const child = spawn(program!, args, {
    stdio: 'inherit',
    env: {
      ...process.env,
      DOCKER_HOST: engine.host,
      TEST_CONTAINERS: '1',
      // Ryuk is an image of its own, which cannot be made from Debian's packages.
      TESTCONTAINERS_RYUK_DISABLED: 'true',
      // Within a container, the library would look for the network `bridge`, which the engine does not have.
      TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1',
    },
  });
  const [code] = await once(child, 'exit');
  process.exitCode = code ?? 1;
});
