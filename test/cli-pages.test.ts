import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type CliOptions, runCommand } from './support/cli.ts';
import { useService, useUser } from './support/service.ts';

/** Tests `bookmarks add URL`, which reads the title and the description of the page from this computer. */

const service = useService();
const user = useUser(service);

/** Starts a server on this computer. Returns its origin. */
async function serve(respond: RequestListener): Promise<string> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const servePage = (body: string | Uint8Array, headers: Record<string, string> = {}, status = 200) =>
  serve((_, response) => response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body));

/** Adds a bookmark through the command line. Returns the bookmark and the notes that the command printed. */
async function add(args: string[], options: CliOptions = {}) {
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token };
  const { code, out, err } = await runCommand(['add', '--json', ...args], { env, ...options });
  expect(code, err).toBe(0);
  return { ...JSON.parse(out), err };
}

const PAGE = '<title>The title</title><meta name="description" content="The description">';

test.each<[string, string | Uint8Array, Record<string, string>, string, string]>([
  ['its title and description', PAGE, {}, 'The title', 'The description'],
  [
    'properties for social networks, if it has no title',
    '<meta property="og:title" content="OG"><meta property="og:description" content="D">',
    {},
    'OG',
    'D',
  ],
  [
    'the first title outside of a picture, in one line',
    '<svg><title>Logo</title></svg><TITLE>\n  A &amp; B\t&#x1f600;\n</TITLE><title>Other</title>',
    {},
    'A & B 😀',
    '',
  ],
  [
    'the encoding in the header',
    Buffer.from('<title>B\xfccher</title>', 'latin1'),
    { 'content-type': 'text/html; charset="ISO-8859-1"' },
    'Bücher',
    '',
  ],
  [
    'the encoding in a META element',
    Buffer.from('<meta charset=windows-1251><title>\xcc\xe8\xf0</title>', 'latin1'),
    {},
    'Мир',
    '',
  ],
  [
    'no encoding, and is not UTF-8',
    Buffer.from('<title>B\xfccher \x80</title>', 'latin1'),
    {},
    'Bücher €',
    '',
  ],
  ['an encoding that does not exist', '<meta charset="utf-99"><title>Bücher</title>', {}, 'Bücher', ''],
  [
    'the wrong encoding, but a byte order mark',
    '\ufeff<meta charset="latin1"><title>Bücher</title>',
    {},
    'Bücher',
    '',
  ],
  [
    'titles in a comment and in a script',
    '<!-- <title>Old</title> <!-- --><script>"<title>No</title>"</script><title>New</title><!-- <title>',
    {},
    'New',
    '',
  ],
  ['UTF-16', Buffer.from('\ufeff<title>Bücher</title></head>', 'utf16le'), {}, 'Bücher', ''],
  ['compressed HTML', gzipSync(PAGE), { 'content-encoding': 'gzip' }, 'The title', 'The description'],
  [
    'control characters',
    '<title>a\u0000b\u001b[2Jc\u009b\u202ed&#27;e&#x202e;</title>',
    {},
    'a b [2Jc d e',
    '',
  ],
])('a page that has %s gives the bookmark its texts', async (_, body, headers, title, comment) => {
  const url = await servePage(body, headers);
  const added = await add([url]);
  expect(added.title.replaceAll('\ufffd', ' ')).toBe(title);
  expect([added.comment, added.url, added.err]).toEqual([comment, url, '']);
});

test('long texts are cut to what a bookmark takes', async () => {
  const url = await servePage(
    `<title>${'😀'.repeat(3_000)}</title><meta name=description content="${'x'.repeat(20_000)}">`,
  );
  const { title, comment } = await add([url]);
  expect([[...title].length, comment.length]).toEqual([2_048, 10_000]);
});

describe('the page is not read', () => {
  test.each([
    ['--title', ['--title', 'Mine'], 'Mine'],
    ['an empty --title', ['--title', ''], ''],
    ['--no-fetch', ['--no-fetch'], ''],
  ])('with %s', async (_, options, title) => {
    let count = 0;
    const url = await serve((_request, response) => {
      count += 1;
      response.end();
    });
    expect(await add([url, ...options])).toMatchObject({ title, comment: '', err: '' });
    expect(count).toBe(0);
  });

  test('if there is no login', async () => {
    let count = 0;
    const url = await serve((_request, response) => {
      count += 1;
      response.end();
    });
    const env = { BOOKMARKS_URL: service.origin, XDG_CONFIG_HOME: '/nowhere' };
    expect((await runCommand(['add', url], { env })).code).toBe(4);
    expect(count).toBe(0);
  });
});

test('a comment of the user is kept, and only the title is read', async () => {
  expect(await add([await servePage(PAGE), '--comment', 'Mine'])).toMatchObject({
    title: 'The title',
    comment: 'Mine',
  });
});

test('the page gets no credentials: neither those of the url, nor the token', async () => {
  const seen: object[] = [];
  const origin = await serve(({ headers, url }, response) => {
    seen.push([url, headers.authorization, headers.cookie]);
    if (url === '/start') response.writeHead(302, { location: origin.replace('//', '//eve:pass@') });
    else response.writeHead(200, { 'content-type': 'text/html' });
    response.end(PAGE);
  });
  const url = `${origin.replace('//', '//ann:secret@')}/start`;
  expect(await add([url])).toMatchObject({ url, title: 'The title' });
  expect(seen).toEqual([
    ['/start', undefined, undefined],
    ['/', undefined, undefined],
  ]);
});

test.each([
  [3, 'The title', ''],
  [4, '', 'it redirects more than 3 times'],
])('after %i redirects the title is %j', async (redirects, title, note) => {
  const origin = await serve(({ url }, response) => {
    const left = Number(url!.slice(1));
    if (left > 0) response.writeHead(307, { location: `/${left - 1}`, 'set-cookie': 'a=b' });
    else response.writeHead(200, { 'content-type': 'text/html' });
    response.end(PAGE);
  });
  const added = await add([`${origin}/${redirects}`]);
  expect([added.title, added.url]).toEqual([title, `${origin}/${redirects}`]);
  expect(added.err).toContain(note);
});

test.each<[string, () => Promise<string>, string]>([
  ['has another type', () => servePage('%PDF', { 'content-type': 'application/pdf' }), 'it is not HTML'],
  ['is missing', () => servePage(PAGE, {}, 404), 'it has the status 404'],
  ['redirects to a file', () => servePage('', { location: 'file:///etc/passwd' }, 301), 'not http or https'],
  ['redirects to no url', () => servePage('', { location: 'http://[' }, 301), 'Invalid URL'],
  ['cannot be reached', async () => 'http://127.0.0.1:9/', ''],
  [
    'breaks off',
    () => serve((_, response) => void response.writeHead(200).write('<', () => response.destroy())),
    '',
  ],
])('a page that %s is saved all the same, with a note', async (_, start, note) => {
  const url = await start();
  const added = await add([url]);
  expect([added.url, added.title]).toEqual([url, '']);
  expect(added.err).toMatch(/^The title could not be read from the page: \S/);
  expect(added.err).toContain(note);
});

test('a page without a title is saved without a note', async () => {
  expect(await add([await servePage('<p>Hello')])).toMatchObject({ title: '', comment: '', err: '' });
});

test('a page that never ends is read up to its head, and one without a head up to 1 MiB', async () => {
  for (const [begin, title] of [
    [`${PAGE}</he`, 'The title'],
    ['<title>Huge</title>', 'Huge'],
  ] as const) {
    let sent = 0;
    const closed = Promise.withResolvers<void>();
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).write(begin);
      const chunk = 'ad>'.padEnd(65_536, ' ');
      const send = () => {
        if (response.destroyed) return;
        sent += chunk.length;
        response.write(chunk, () => setImmediate(send));
      };
      send();
      response.once('close', closed.resolve);
    });
    expect(await add([url])).toMatchObject({ title, err: '' });
    await closed.promise;
    // The system's own buffers take some more.
    expect(sent).toBeLessThan(32 * 1_048_576);
  }
});

test('a page that is slow is given up after 5 s, and keeps a title that has arrived', async () => {
  const silent = add([await serve(() => {})]);
  const late = add([
    await serve(
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).write('<title>Late</title>'),
    ),
  ]);
  expect(await silent).toMatchObject({ title: '', err: expect.stringContaining('it took longer than 5 s') });
  expect(await late).toMatchObject({ title: 'Late', err: '' });
});

test('Ctrl-C while the page is read saves nothing', async () => {
  const controller = new AbortController();
  const url = await serve(() => controller.abort());
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token };
  expect((await runCommand(['add', url], { env, signal: controller.signal })).code).toBe(130);
  expect((await user.post('/bookmarks/get', { url })).body.bookmarks).toEqual([]);
});
