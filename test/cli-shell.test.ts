import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as forward, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { writeManual } from '../src/cli/manual.ts';
import { buildProgram } from '../src/cli/program.ts';
import { runCommand } from './support/cli.ts';
import { makeFolder, removeFolder } from './support/folders.ts';
import { provide } from './support/programs.ts';
import { useService } from './support/service.ts';

/** Tests what the command line offers to shells: completion, a manual page, exit codes, proxies, and opening a browser. */

const service = useService();

const openFolder = () => {
  const folder = makeFolder('cli-shell');
  onTestFinished(() => removeFolder(folder));
  return folder;
};

describe('completion', () => {
  /** Completes command lines in a real shell, and returns the sorted candidates of each. */
  const completeIn = async (
    shell: 'bash' | 'zsh' | 'fish',
    complete: (line: string) => string,
    lines: readonly string[],
    env: Record<string, string> = {},
  ): Promise<string[][]> => {
    const program = shell === 'bash' ? 'bash' : await provide(shell);
    const folder = openFolder();
    const file = join(folder, 'completion');
    writeFileSync(file, (await runCommand(['completion', shell])).out);
    const found: string[][] = [];
    for (const line of lines) {
      const flags = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell];
      const { stdout } = await promisify(execFile)(program, [...flags, '-c', complete(line), file], {
        env: { ...process.env, HOME: folder, FILE: file, ...env },
        cwd: folder,
      });
      found.push(stdout.split('\n').filter(Boolean).sort());
    }
    return found;
  };

  const completeInBash = (line: string) => `
    source "$FILE"
    COMP_WORDS=(bookmarks ${line.replace(/ $/, " ''")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _bookmarks; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const completeInFish = (line: string) =>
    `source $FILE; complete -C 'bookmarks ${line}' | string replace -r '\\t.*' '' | string match -v completion; true`;
  // Replaces only zsh's own functions `_describe`, `_files` and `compadd`, because they draw on the screen.
  const completeInZsh = (line: string) => `
    compdef() { :; }
    source "$FILE"
    _files() { :; }
    _describe() {
      local each
      for each in "\${(@P)2}"; do
        each=\${each%%:*}; [[ $each == \${words[CURRENT]}* ]] && print -r -- $each
      done
    }
    compadd() { print -rl -- "\${(@P)3}"; }
    words=(bookmarks ${line.replace(/ $/, " ''")}); CURRENT=\${#words}
    _bookmarks; true`;

  const LINES = ['tags re', 'add --on-duplicate r', 'search --s', 'completion ', 'add x tags '];
  const EXPECTED = [['rename'], ['return'], ['--site', '--sort'], ['bash', 'fish', 'zsh'], []];

  test('offers commands, options and choices in bash', async () => {
    expect(await completeIn('bash', completeInBash, LINES)).toEqual(EXPECTED);
  });

  test('offers the same in fish', async () => {
    expect(await completeIn('fish', completeInFish, LINES)).toEqual(EXPECTED);
  });

  test('offers the same in zsh', async () => {
    expect(await completeIn('zsh', completeInZsh, LINES)).toEqual(EXPECTED);
  });

  /** Returns the environment of a user with tags, whose shell finds the program `bookmarks`. */
  const openWithTags = async (): Promise<Record<string, string>> => {
    const user = await service.user();
    for (const name of ['Data', 'database', 'to read', '$(touch made)', 'a, b'])
      await user.post('/tags/create', { name });
    const folder = openFolder();
    const main = join(import.meta.dirname, '../src/cli/main.ts');
    writeFileSync(join(folder, 'bookmarks'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
    chmodSync(join(folder, 'bookmarks'), 0o755);
    const PATH = `${folder}:${process.env.PATH}`;
    return { PATH, BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token };
  };

  test('offers tags in bash, escaped as the shell needs them', async () => {
    const lines = [
      'add x -t work,Da',
      'tags rm a',
      "search -t 'to\\ r'",
      `search -t '"to r'`,
      "tags merge '$'",
    ];
    expect(await completeIn('bash', completeInBash, lines, await openWithTags())).toEqual([
      ...[['work\\,Data', 'work\\,database'], ['a\\,\\ b'], ['to\\ read'], ['to read']],
      ['\\$\\(touch\\ made\\)'],
    ]);
  });

  const TAG_LINES = ['search --without-tag work,dat', 'edit 1 --add-tag a', 'tags rm a'];
  const EXPECTED_TAGS = [['work,Data', 'work,database'], [], ['a, b']];

  test('offers tags in fish', async () => {
    const env = await openWithTags();
    expect(await completeIn('fish', completeInFish, TAG_LINES, env)).toEqual(EXPECTED_TAGS);
  });

  test('offers tags in zsh', async () => {
    const lines = [...TAG_LINES, "search -t 'to\\ r'"];
    const found = await completeIn('zsh', completeInZsh, lines, await openWithTags());
    expect(found).toEqual([...EXPECTED_TAGS, ['to read']]);
  });

  test('offers no tags, and shows no error, without a login', async () => {
    const env = { ...(await openWithTags()), BOOKMARKS_TOKEN: '' };
    expect(await completeIn('bash', completeInBash, ['add x -t Da'], env)).toEqual([[]]);
  });
});

describe('the manual page', () => {
  const streams = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr };
  const program = buildProgram(streams, () => async () => {});

  test('is well-formed, and names every command and every exit code', async () => {
    const mandoc = await provide('mandoc');
    const file = join(openFolder(), 'bookmarks.1');
    writeFileSync(file, writeManual(program));
    await promisify(execFile)(mandoc, ['-Tlint', '-Werror', file]);
    const { stdout } = await promisify(execFile)(mandoc, ['-Tascii', file]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: how mandoc prints bold text
    const text = stdout.replace(/.\u0008/g, '').replace(/\s+/g, ' ');
    for (const command of program.createHelp().visibleCommands(program))
      expect(text).toContain(`bookmarks ${command.name()} `);
    for (const code of [0, 1, 2, 3, 4, 5, 6, 130]) expect(text).toMatch(new RegExp(` ${code} +[A-Z]`));
  });

  test('names the version that --version prints', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));
    expect(await runCommand(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
    expect(writeManual(program)).toContain(`bookmarks ${version}`);
  });
});

test('the exit code shows the kind of a failure', async () => {
  const user = await service.user();
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token };
  const reader = { ...env, BOOKMARKS_TOKEN: await service.token(user.id, 'read') };
  const away = { ...env, BOOKMARKS_URL: 'http://127.0.0.1:9' };
  const cases: [string[], Record<string, string>, number][] = [
    [['whoami'], env, 0],
    [['rm', 'x'], env, 2],
    [['nonsense'], env, 2],
    [['add', 'no-url'], env, 2],
    [['rm', '999999999'], env, 3],
    [['rm', '999999998', '999999999'], env, 3],
    [['tags', 'rm', 'none'], env, 3],
    [['add', '--no-fetch', 'example.org'], reader, 4],
    [['whoami'], { ...env, BOOKMARKS_TOKEN: 'bka_1_wrong' }, 4],
    [['whoami'], { BOOKMARKS_URL: service.origin, XDG_CONFIG_HOME: openFolder() }, 4],
  ];
  // The client retries for a while before it reports the failure, so the other commands run meanwhile.
  const unanswered = runCommand(['whoami'], { env: away });
  for (const [args, environment, expected] of cases) {
    const { code, out } = await runCommand(args, { env: environment });
    expect([args, code]).toEqual([args, expected]);
    if (expected !== 0) expect(out).toBe('');
  }
  const usage = await runCommand(['nonsense', '--json'], { env });
  expect(JSON.parse(usage.err)).toMatchObject({ code: 'USAGE', error: "unknown command 'nonsense'" });
  expect((await unanswered).code).toBe(6);
});

test('open shows the page of a bookmark in the browser, and refuses anything that is not a web page', async () => {
  const user = await service.user();
  const folder = openFolder();
  const [browser, shown] = [join(folder, 'browser'), join(folder, 'shown')];
  writeFileSync(browser, `#!/bin/sh\necho "$1" > ${shown}.draft && mv ${shown}.draft ${shown}\n`);
  chmodSync(browser, 0o755);
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token, BROWSER: browser };
  const { id } = (await user.post('/bookmarks/add', { url: 'https://example.org/?a=1&b=2' })).body;
  for (const given of [String(id), 'example.org/?a=1&b=2']) {
    const { out } = await runCommand(['open', given, '--json'], { env });
    expect(JSON.parse(out)).toEqual({ opened: 'https://example.org/?a=1&b=2' });
  }
  await expect.poll(() => readFileSync(shown, 'utf8')).toBe('https://example.org/?a=1&b=2\n');
  expect(await runCommand(['open', 'example.org/other'], { env })).toMatchObject({ code: 3, out: '' });
  const without = await runCommand(['open', String(id)], { env: { ...env, BROWSER: '/no/browser' } });
  expect(without).toMatchObject({ code: 1, err: expect.stringContaining('BROWSER') });
});

describe('a proxy that the environment names', () => {
  /** A proxy on this computer. `heads` has the first line and the headers of each request that it received. */
  const startHttpProxy = async () => {
    const heads: string[] = [];
    const note = ({ method, url, headers }: IncomingMessage) => {
      heads.push(`${method} ${url} ${JSON.stringify(headers)}`);
    };
    const server = createServer((request, response) => {
      note(request);
      const target = forward(
        request.url!,
        { method: request.method!, headers: request.headers },
        (answer) => {
          response.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(response);
        },
      );
      request.pipe(target);
    });
    server.on('connect', (request: IncomingMessage, client: Socket) => {
      note(request);
      const { hostname, port } = new URL(`http://${request.url}`);
      const target = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 Connected\r\n\r\n');
        client.pipe(target).pipe(client);
      });
      for (const socket of [client, target]) socket.on('error', () => {});
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return { heads, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };

  /** Runs `bookmarks whoami` in a process of its own, and returns what it prints. */
  const runAlone = async (env: Record<string, string>): Promise<string> => {
    const main = join(import.meta.dirname, '../src/cli/main.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [main, 'whoami'], {
      env: { PATH: process.env.PATH, ...env },
    });
    return stdout;
  };

  test('carries the requests, unless NO_PROXY names the host of the service', async () => {
    const proxy = await startHttpProxy();
    const user = await service.user();
    const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token, HTTP_PROXY: proxy.url };
    expect(await runAlone(env)).toContain(user.email);
    const { host, hostname } = new URL(service.origin);
    expect(proxy.heads.length).toBeGreaterThan(0);
    for (const head of proxy.heads) expect(head).toContain(host);
    const before = proxy.heads.length;
    expect(await runAlone({ ...env, NO_PROXY: `example.org,${hostname}` })).toContain(user.email);
    expect(proxy.heads).toHaveLength(before);
  });

  test('sees no token and no path of a service with https', async () => {
    const proxy = await startHttpProxy();
    const user = await service.user();
    const pem = (name: string) => readFileSync(join(import.meta.dirname, `support/tls/${name}.pem`));
    const tls = createTlsServer({ key: pem('key'), cert: pem('certificate') }, (client) => {
      const target = connect(Number(new URL(service.origin).port), '127.0.0.1');
      client.pipe(target).pipe(client);
      for (const socket of [client, target]) socket.on('error', () => {});
    });
    await once(tls.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void tls.close());
    const { port } = tls.address() as AddressInfo;
    const env = {
      BOOKMARKS_URL: `https://localhost:${port}`,
      BOOKMARKS_TOKEN: user.token,
      NODE_EXTRA_CA_CERTS: join(import.meta.dirname, 'support/tls/certificate.pem'),
      // Curl and other programs read the names in lower case.
      https_proxy: proxy.url,
    };
    expect(await runAlone(env)).toContain(user.email);
    expect(proxy.heads.length).toBeGreaterThan(0);
    for (const head of proxy.heads) {
      expect(head).toMatch(new RegExp(`^CONNECT localhost:${port} `));
      expect(head).not.toMatch(/authorization|bka_|bks_/i);
    }
  });
});
