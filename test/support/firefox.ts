import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { noteProcess } from './processes.ts';
import { runDir } from './run.ts';
import { until } from './until.ts';

/** A Firefox without windows, controlled by Marionette. */
export interface Firefox {
  /**
   * Runs the body of an async function with Firefox's own rights, and returns its result. The body finds its
   * arguments in the array `args`, and can load modules of Firefox with `load(name)`.
   */
  run<T>(body: string, ...args: unknown[]): Promise<T>;
  /** Quits Firefox as a user would, so that the profile's databases are complete. */
  quit(): Promise<void>;
  /** Kills the process if it still runs. */
  kill(): void;
}

/** With these settings, Firefox contacts no server, and starts without its default bookmarks. */
const PREFERENCES = {
  'marionette.port': 0,
  'browser.bookmarks.file': '',
  'browser.places.importBookmarksHTML': false,
  'browser.bookmarks.restore_default_bookmarks': false,
  'browser.newtabpage.enabled': false,
  'app.normandy.enabled': false,
  'app.update.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.enabled': false,
};

/** Starts a Firefox with this folder as its profile. */
export async function startFirefox(program: string, profile: string): Promise<Firefox> {
  const lines = Object.entries(PREFERENCES).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
  );
  writeFileSync(join(profile, 'user.js'), lines.join(''));
  const child = spawn(
    program,
    ['--headless', '--no-remote', '--marionette', '--remote-allow-system-access', '--profile', profile],
    { env: { PATH: process.env.PATH, HOME: profile, TMPDIR: profile }, stdio: 'ignore' },
  );
  noteProcess(runDir(), child.pid!);
  const ended = once(child, 'exit');
  const portFile = join(profile, 'MarionetteActivePort');
  const port = await until(() => {
    if (child.exitCode !== null) throw new Error(`Firefox ended with ${child.exitCode}`);
    return existsSync(portFile) && Number(readFileSync(portFile, 'utf8'));
  }, 180_000);
  const send = await connectTo(port);
  await send('WebDriver:NewSession', {});
  await send('Marionette:SetContext', { value: 'chrome' });
  await send('WebDriver:SetTimeouts', { script: 300_000 });
  return {
    async run<T>(body: string, ...args: unknown[]) {
      const script = `
        const [done, ...args] = [arguments[arguments.length - 1], ...Array.from(arguments).slice(0, -1)];
        const load = (name) => ChromeUtils.importESModule('resource://gre/modules/' + name + '.sys.mjs')[name];
        (async () => { ${body} })().then((value) => done({ value }), (error) => done({ error: String(error) }));`;
      const { value } = (await send('WebDriver:ExecuteAsyncScript', { script, args, sandbox: 'system' })) as {
        value: { value: T; error?: string };
      };
      if (value.error !== undefined) throw new Error(`in Firefox: ${value.error}`);
      return value.value;
    },
    async quit() {
      await send('Marionette:Quit', { flags: ['eAttemptQuit'] });
      await ended;
    },
    kill: () => void child.kill('SIGKILL'),
  };
}

type Send = (name: string, parameters: object) => Promise<unknown>;

/**
 * Connects to Marionette, which controls Firefox. Returns a function that sends a command. Each message consists of a
 * number of bytes, a colon and a JSON text of that length. The text is `[0, id, command, parameters]` for a command and
 * `[1, id, error, result]` for a response.
 */
async function connectTo(port: number): Promise<Send> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  let received: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const colon = received.indexOf(':');
      const messageEnd = colon + 1 + Number(received.subarray(0, colon));
      if (colon < 0 || received.length < messageEnd) return;
      const message: unknown = JSON.parse(received.subarray(colon + 1, messageEnd).toString());
      received = received.subarray(messageEnd);
      // The first message is a greeting.
      if (!Array.isArray(message)) continue;
      const [, id, error, result] = message;
      const { resolve, reject } = waiting.get(id)!;
      if (error) reject(new Error(`Marionette: ${error.message}`));
      else resolve(result);
    }
  });
  socket.on('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('Firefox closed the connection'));
  });
  let lastId = 0;
  return (name, parameters) => {
    lastId += 1;
    const id = lastId;
    const message = Buffer.from(JSON.stringify([0, id, name, parameters]));
    socket.write(`${message.length}:`);
    socket.write(message);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  };
}
