import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServingRole } from '../../src/process/serve.ts';
import { freezeFamily, killFamily, noteProcess, thawFamily } from '../support/processes.ts';
import type { ReplicaEnv } from '../support/replica.ts';
import { runDir } from '../support/run.ts';
import { type Journal, type Life, nowMs } from './journal.ts';

/** A process's resources after a garbage collection. */
export interface ProcessReport {
  heapBytes: number;
  /** By kind of resource, such as timers or sockets: the number of active ones. */
  resources: Record<string, number>;
}

/** A place in the fleet for one process at a time. Each process there uses the same ports as the previous one. */
export interface ServiceProcess {
  readonly name: string;
  readonly role: ServingRole;
  readonly port: number;
  readonly metricsPort: number;
  /** False from the end of the process until `start`. */
  readonly isUp: boolean;
  /** Starts a new process. Resolves when its `/livez` responds with a 2xx status. */
  start(): Promise<void>;
  /** Sends SIGKILL or SIGTERM. Resolves when the process has ended. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
  /** Sets the process's wall clock to the real time plus `stepMs`. */
  stepClock(stepMs: number): void;
  report(): Promise<ProcessReport>;
}

export interface Place {
  name: string;
  role: ServingRole;
  port: number;
  metricsPort: number;
  env: ReplicaEnv;
  /** The folder for the process's command files. */
  folder: string;
}

/** A process must respond within this time after it is started, even under load. */
const START_LIMIT_MS = 120_000;

/**
 * The beginnings of log lines about Redis. The first line names the functions that a process performs without Redis.
 * The second line says that all functions use Redis again.
 */
const AWAY = 'Redis is away';
const SERVES = 'Redis serves: limits, notifications and imports are shared';

/** Opens a place in the fleet. Resolves when the first process in this place responds. */
export async function openProcess(place: Place, journal: Journal): Promise<ServiceProcess> {
  const commands = join(place.folder, `${place.name}.json`);
  writeFileSync(commands, '{"stepMs":0}');
  let run: Run | undefined;
  let isFrozen = false;
  const current = () => run ?? fail(`${place.name} does not run`);
  const process: ServiceProcess = {
    ...place,
    get isUp() {
      return run !== undefined && run.life.end === undefined;
    },
    async start() {
      writeFileSync(commands, '{"stepMs":0}');
      // Starts the process again if it exits, as a supervisor would. A process may exit because it cannot reach the
      // database.
      for (let isAnswering = false; !isAnswering; ) {
        run = launch(place, commands, journal);
        isAnswering = await untilAnswering(place.port, run.life);
      }
    },
    async end(signal) {
      const { child, life, ended } = current();
      life.endedBy ??= signal;
      // A frozen process is killed together with its child processes, which are frozen too.
      if (isFrozen && signal === 'SIGKILL') killFamily(child.pid!);
      else child.kill(signal);
      await ended;
    },
    freeze() {
      isFrozen = true;
      return freezeFamily(current().child.pid!);
    },
    thaw() {
      thawFamily(current().child.pid!);
      isFrozen = false;
    },
    stepClock(stepMs) {
      writeFileSync(commands, JSON.stringify({ stepMs }));
      current().child.kill('SIGUSR2');
    },
    report() {
      const reported = Promise.withResolvers<ProcessReport>();
      current().onReport = reported.resolve;
      current().child.kill('SIGUSR2');
      return reported.promise;
    },
  };
  await process.start();
  return process;
}

interface Run {
  child: ChildProcess;
  life: Life;
  ended: Promise<void>;
  onReport: ((report: ProcessReport) => void) | undefined;
}

function launch(place: Place, commands: string, journal: Journal): Run {
  const { name, role, port, metricsPort, env } = place;
  const all: ReplicaEnv = {
    ...env,
    PORT: port,
    METRICS_PORT: metricsPort,
    CHAOS_COMMANDS: commands,
    NODE_COMPILE_CACHE: `${runDir()}/compiled`,
    NODE_OPTIONS: '--import ./test/chaos/preload.ts',
  };
  const texts = Object.entries(all).map(([key, value]) => [key, String(value)]);
  const child = spawn(process.execPath, ['src/main.ts', role], {
    env: { PATH: process.env.PATH, ...Object.fromEntries(texts) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  noteProcess(runDir(), child.pid!);
  const startMs = nowMs();
  const life: Life = {
    name,
    startMs,
    answeredMs: undefined,
    endMs: Number.POSITIVE_INFINITY,
    endedBy: undefined,
    end: undefined,
    problems: [],
    fallbacks: env.REDIS_URL === undefined ? [{ startMs, endMs: Number.POSITIVE_INFINITY }] : [],
  };
  journal.lives.push(life);
  const ended = once(child, 'exit').then(([code, signal]) => {
    life.end = code ?? signal;
    life.endMs = nowMs();
  });
  const run: Run = { child, life, ended, onReport: undefined };
  createInterface({ input: child.stdout! }).on('line', (text) => readLine(run, text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => life.problems.push({ level: 60, text }));
  return run;
}

function readLine(run: Run, text: string): void {
  // Lines about requests are skipped, because the clients already journal every request.
  if (text.includes('"msg":"request"')) return;
  const { life } = run;
  const { level, msg, ...facts } = JSON.parse(text);
  if (msg === 'chaos report') run.onReport?.(facts);
  const last = life.fallbacks.at(-1);
  const limitsAlone = last?.endMs === Number.POSITIVE_INFINITY;
  if (msg.startsWith(AWAY) && facts.away.includes('limits') && !limitsAlone) {
    life.fallbacks.push({ startMs: nowMs(), endMs: Number.POSITIVE_INFINITY });
  }
  if (msg === SERVES && limitsAlone) last.endMs = nowMs();
  if (level >= 40) life.problems.push({ level, text });
}

/** Resolves with true when the process responds, or with false if it ends before that. */
async function untilAnswering(port: number, life: Life): Promise<boolean> {
  const responses = () =>
    fetch(`http://127.0.0.1:${port}/livez`).then(
      (response) => response.ok,
      () => false,
    );
  while (!(await responses())) {
    if (life.end !== undefined) return false;
    if (nowMs() > life.startMs + START_LIMIT_MS) fail(`${life.name} does not respond`);
    await sleep(50);
  }
  life.answeredMs = nowMs();
  return true;
}

function fail(message: string): never {
  throw new Error(message);
}
