import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../support/folders.ts';
import { isRunning, noteProcess, sendSignal } from '../support/processes.ts';
import { provide } from '../support/programs.ts';
import { runDir } from '../support/run.ts';
import { until } from '../support/until.ts';

/** A container engine of our own: Debian's `dockerd`, apart from any other engine of the machine. */

/**
 * The engine's images and build cache. They stay here, so that the next run need not make them again. Only one engine
 * at a time may use this folder.
 */
const DATA = '/var/tmp/bookmark-service-containers';

/** How long to wait for another run that uses the engine. */
const LOCK_SECONDS = 1_800;

/** The exit code of a program that cannot run on this machine. */
const NOT_DONE = 75;

export interface Engine extends AsyncDisposable {
  /** The engine's `DOCKER_HOST`. */
  readonly host: string;
  /** Runs the program `docker`. Resolves with its output, and rejects with its error message. */
  docker(...args: string[]): Promise<string>;
  /** Runs another program that uses the engine, in this folder. Resolves with what it printed. */
  run(program: string, args: readonly string[], options?: { cwd?: string; env?: object }): Promise<string>;
}

/** Why no engine can run on this machine. */
class NoEngineError extends Error {}

/** Starts the engine. Disposing of it ends it together with its containers. Throws `NoEngineError` if it cannot run. */
export async function startEngine(): Promise<Engine> {
  const dockerd = await provideEngine();
  mkdirSync(DATA, { recursive: true });
  const folder = makeFolder('engine', runDir());
  const host = `unix://${folder}/socket`;
  const pidFile = join(DATA, 'pid');
  const locked = ['--close', `--timeout=${LOCK_SECONDS}`, join(DATA, 'lock')];
  // No engine runs while this process has the lock, unless the run of that engine was killed.
  const start = `
    left=$(cat ${pidFile} 2>/dev/null)
    if [ "$(cat /proc/$left/comm 2>/dev/null)" = dockerd ]; then kill $left; tail --pid=$left -f /dev/null; fi
    exec ${dockerd} --data-root ${DATA}/data --exec-root ${DATA}/exec --pidfile ${pidFile} --host ${host} --bridge none`;
  // If this process is killed, `flock` ends too, and another run gets the lock.
  const child = spawn('setpriv', ['--pdeathsig=TERM', 'flock', ...locked, 'sh', '-c', start], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  noteProcess(runDir(), child.pid!);
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (log += chunk));
  let isOver = false;
  child.once('exit', () => (isOver = true));

  const environment = { ...process.env, DOCKER_HOST: host, DOCKER_BUILDKIT: '0' };
  const run: Engine['run'] = async (program, args, { cwd, env } = {}) => {
    const options = { cwd, env: { ...environment, ...env }, maxBuffer: 64 << 20 };
    const { stdout, stderr } = await promisify(execFile)(program, [...args], options);
    return `${stdout}${stderr}`.trim();
  };
  const docker = async (...args: string[]) => {
    const options = { env: environment, maxBuffer: 64 << 20 };
    return (await promisify(execFile)('docker', args, options)).stdout.trim();
  };
  const responds = () =>
    docker('version').then(
      () => true,
      () => isOver && 'ended',
    );
  if ((await until(responds, LOCK_SECONDS * 1_000)) === 'ended')
    throw new NoEngineError(`dockerd does not start: ${log.trim().split('\n').at(-1)}`);
  // The engine restarts the containers of a run that was killed.
  await removeContainers(docker);
  return {
    host,
    docker,
    run,
    async [Symbol.asyncDispose]() {
      await removeContainers(docker);
      // Images that have lost their name, such as those of an older state of the code.
      await docker('image', 'prune', '--force');
      sendSignal(Number(readFileSync(pidFile, 'utf8')), 'SIGTERM');
      await until(() => isOver || !isRunning(child.pid!));
    },
  };
}

/** Removes all containers with their volumes and networks. */
async function removeContainers(docker: Engine['docker']): Promise<void> {
  const list = async (...args: string[]) => (await docker(...args, '--quiet')).split('\n').filter(Boolean);
  const containers = await list('ps', '--all');
  if (containers.length > 0) await docker('rm', '--force', '--volumes', ...containers);
  const volumes = await list('volume', 'ls');
  if (volumes.length > 0) await docker('volume', 'rm', ...volumes);
  await docker('network', 'prune', '--force');
}

/** Installs the engine if necessary, and returns the path of `dockerd`. */
async function provideEngine(): Promise<string> {
  if (process.getuid?.() !== 0) throw new NoEngineError('only root can start a container engine');
  try {
    const dockerd = await provide('dockerd');
    await provide('docker');
    return dockerd;
  } catch (error) {
    throw new NoEngineError((error as Error).message);
  }
}

/**
 * Runs a program that needs an engine. Without an engine, exits with 75, which means "not done", and writes the reason to
 * the file that the environment variable `SKIP_REASON` names.
 */
export async function needEngine(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof NoEngineError)) throw error;
    console.log(`not done: ${error.message}`);
    if (process.env.SKIP_REASON) writeFileSync(process.env.SKIP_REASON, error.message);
    process.exitCode = NOT_DONE;
  }
}
