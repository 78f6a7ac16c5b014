import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { displayWidth, fitToWidth, toLine, writeOutControls } from '../src/cli/display-text.ts';
import { foldText } from '../src/domain/text.ts';
import { readDate } from '../src/formats/dates.ts';
import { parseNetscape } from '../src/formats/netscape.ts';
import { readBookmarkFile } from '../src/formats/read-file.ts';
import { formatNetscapeFile } from '../src/formats/write-netscape.ts';
import { makeBookmark } from './support/bookmark-samples.ts';

// Tests the pure functions that read other programs' bookmark files, and the ones that display users' texts.

afterEach(() => {
  vi.unstubAllEnvs();
});

test.each(['Pacific/Kiritimati', 'America/Los_Angeles'])(
  'a date without an offset is UTC, even in the time zone %s',
  (zone) => {
    vi.stubEnv('TZ', zone);
    expect(new Date(2026, 0, 1).getTimezoneOffset()).not.toBe(0);
    for (const text of ['2026-01-02 03:04:05', '2026-01-02T03:04:05'])
      expect(readDate(text)).toBe('2026-01-02T03:04:05.000Z');
    expect(readDate('2026-01-02T03:04')).toBe('2026-01-02T03:04:00.000Z');
    expect(readDate('2026-01-02T03:04:05+01:00')).toBe('2026-01-02T02:04:05.000Z');
  },
);

test('a date of zero, or an empty one, counts as absent', () => {
  expect(readDate(0)).toBeUndefined();
  expect(readDate('')).toBeUndefined();
  expect(readDate(1_767_322_800)).toBe('2026-01-02T03:00:00.000Z');
});

test('of two bookmarks with the same url, the earliest readable date counts', () => {
  const readable = '2020-05-06T07:08:09Z';
  for (const dates of [
    [readable, '01/02/2020'],
    ['01/02/2020', readable],
    [readable, '2021-01-01'],
  ]) {
    const rows = dates.map((date) => `https://example.org/,${date}`);
    const { entries } = read(['url,created_at', ...rows].join('\n'));
    expect(
      entries.map((entry) => entry?.created_at),
      dates.join(),
    ).toEqual(['2020-05-06T07:08:09.000Z']);
  }
});

test.each([
  '0001-01-01T00:00:00.000Z',
  '1969-12-31T23:59:55.000Z',
  '1970-01-01T00:00:00.000Z',
  '2287-01-01T00:00:00.000Z',
  '5138-11-16T09:46:40.000Z',
  '9999-12-31T23:59:59.000Z',
])("a browser's file restores the date %s", (time) => {
  const bookmark = makeBookmark({ created_at: time, updated_at: time });
  expect(read(formatNetscapeFile([bookmark]).join('')).entries).toMatchObject([
    { created_at: time, updated_at: time },
  ]);
});

test.each([
  ['-5', '1969-12-31T23:59:55.000Z'],
  ['1700000000.5', '2023-11-14T22:13:20.500Z'],
  ['133444736000000000', '2023-11-14T22:13:20.000Z'],
  ['1700000000000000000', '2023-11-14T22:13:20.000Z'],
  ['20240115', '2024-01-15T00:00:00.000Z'],
  ['20240115103000', '2024-01-15T10:30:00.000Z'],
  ['45321.4375', '2024-01-30T10:30:00.000Z'],
  ['2020-01-02', '2020-01-02T00:00:00.000Z'],
  ['2020/1/2 3:04', '2020-01-02T03:04:00.000Z'],
  ['2.1.2020 03:04', '2020-01-02T03:04:00.000Z'],
  ['13/2/2020', '2020-02-13T00:00:00.000Z'],
  ['1/31/2020 11:04:05 PM', '2020-01-31T23:04:05.000Z'],
  ['1/31/2020 12:04 AM', '2020-01-31T00:04:00.000Z'],
  ['2020-06-01T08:00:00+0200', '2020-06-01T06:00:00.000Z'],
  ['Thu, 02 Jan 2020 03:04:05 GMT', '2020-01-02T03:04:05.000Z'],
  ['Thu, 2 Jan 2020 03:04:05 +0100', '2020-01-02T02:04:05.000Z'],
  ['January 2, 2020', '2020-01-02T00:00:00.000Z'],
  ['Thu Jan 02 2020 03:04:05 GMT-0100 (Cape Verde Standard Time)', '2020-01-02T04:04:05.000Z'],
])('a table restores the date %j as %j', (date, created) => {
  const { entries, changes } = read(`url,created\nhttps://example.org/,"${date}"\n`);
  expect(entries[0]?.created_at).toBe(created);
  expect(changes).toEqual([]);
});

test.each([
  '01/02/2020',
  'soon',
  '1700000000-3',
  'about 1700000000',
  '2020-02-30',
  '2020-01-01 25:00',
  '99999999999999999999',
])('an entry loses the date %j, which is unreadable or ambiguous, and the report names it', (date) => {
  const { entries, changes, refusals } = read(`url,created\nhttps://example.org/,"${date}"\n`);
  expect(entries).toEqual([expect.not.objectContaining({ created_at: expect.anything() })]);
  expect(changes).toEqual([{ url: 'https://example.org/', change: 'date-dropped', text: date }]);
  expect(refusals).toEqual([]);
});

test.each([
  ['Unread', 'toread'],
  ['Archive', 'archived'],
  ['Starred', 'favorite'],
  ['Liked', 'favorite'],
  ['Recipes', 'Recipes'],
])('the folder %s of Instapaper becomes the tag %s', (folder, tag) => {
  const { entries } = read(
    `URL,Title,Selection,Folder,Timestamp\nhttps://example.org/,One,,${folder},1650000000\n`,
  );
  expect(entries).toEqual([expect.objectContaining({ tags: [tag] })]);
});

test.each([
  ['13/02/2020', '2020-02-01T00:00:00.000Z'],
  ['02/13/2020', '2020-01-02T00:00:00.000Z'],
])('in a table with the date %s, the date 01/02/2020 is %s', (other, created) => {
  const { entries } = read(`url,created\nhttps://a/,01/02/2020\nhttps://b/,${other}\n`);
  expect(entries[0]?.created_at).toBe(created);
});

test('a line break in a description of a bookmark file is kept', () => {
  const html = `<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>
    <DT><A HREF="https://example.org/">A</A><DD>one<br>two</DL>`;
  expect(parseNetscape(html).bookmarks[0]?.comment?.join('\n')).toMatch(/^one\s*\n\s*two/);
});

const read = (file: string | Uint8Array) =>
  readBookmarkFile(typeof file === 'string' ? Buffer.from(file) : file, { foldersAsTags: true });

test('the description of a folder is not added to the bookmark before the folder', () => {
  const html = `<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>
    <DT><A HREF="https://example.org/a">A</A>
    <DT><H3>Folder</H3>
    <DD>about the folder
    <DL><p>
        <DT><A HREF="https://example.org/b">B</A>
    </DL><p></DL>`;
  expect(read(html).entries).toMatchObject([{ comment: '' }, { comment: '', tags: ['Folder'] }]);
});

const titleIn = (bytes: Uint8Array) => readBookmarkFile(bytes, { foldersAsTags: true }).entries[0]?.title;
const netscape = (charset: string) =>
  `<!DOCTYPE NETSCAPE-Bookmark-file-1><META charset="${charset}"><DL><p><DT><A HREF="https://example.org/">Ä</A></DL>`;

test('the mark of UTF-8 at the start of a file overrides its META element', () => {
  expect(titleIn(Buffer.from(`\ufeff${netscape('windows-1252')}`))).toBe('Ä');
  expect(titleIn(Buffer.from(netscape('windows-1252'), 'latin1'))).toBe('Ä');
});

test('a META element that names UTF-16 means UTF-8, because it was readable as ASCII', () => {
  expect(titleIn(Buffer.from(netscape('utf-16')))).toBe('Ä');
});

test('a title about encodings does not change the encoding of JSON, CSV or a list', () => {
  const title = 'Ä: <meta charset="latin1">';
  expect(titleIn(Buffer.from(JSON.stringify([{ url: 'https://example.org/', title }])))).toBe(title);
  expect(titleIn(Buffer.from(`https://example.org/ | ${title}`))).toBe(title);
  expect(titleIn(Buffer.from(`url,title\nhttps://example.org/,"${title.replaceAll('"', '""')}"`))).toBe(
    title,
  );
});

test('an unknown encoding is named', () => {
  expect(() => titleIn(Buffer.from(netscape('klingon')))).toThrow('the file is not text in klingon');
});

test('displayed texts of users contain no control characters, overrides or isolates', () => {
  for (const control of ['\u001b', '\u009b', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069']) {
    expect(toLine(`a${control}b`)).toBe('a b');
    expect(writeOutControls(`a${control}b`)).toBe(
      `a\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}b`,
    );
  }
  expect(writeOutControls('a\n\tb')).toBe('a\n\tb');
});

test('wide characters take two columns, and a truncated text ends with an ellipsis', () => {
  expect(displayWidth('a漢')).toBe(3);
  expect(fitToWidth('漢字', 3)).toBe('漢…');
  expect(fitToWidth('ab', 3)).toBe('ab ');
});

test('an HTML file has a folder for each part of a path, and lists a bookmark in each of its folders', () => {
  const tags = ['Dev/C\\/C++', 'plain', 'Work', 'Work/Databases'].map((name) => ({ id: 1, name }));
  const html = formatNetscapeFile([makeBookmark({ tags })]).join('');
  expect(html.match(/(?<=<H3>)[^<]*|TAGS="[^"]*"/g)).toEqual([
    'Dev',
    'C/C++',
    'TAGS="plain"',
    'Work',
    'Databases',
    'TAGS="plain"',
    'TAGS="plain"',
  ]);
});

test('an HTML file preserves any text', () => {
  const line = fc.string({ unit: 'grapheme' }).map((made) => made.replace(/\s+/g, ' ').trim());
  // Tags with paths would come back in another order, so no tag here contains a `/`. The tests of the command line cover
  // paths.
  const tag = line.map((name) => name.replace(/[,/]/g, '').trim()).filter((name) => name !== '');
  const someTags = fc.uniqueArray(tag, { maxLength: 5, selector: foldText });
  const markup = fc.constantFrom('<b>', '</DL>', '&amp;', '&', '"', "'", '<DT><A HREF="x">', '-->', '\n');
  const paragraph = fc.array(fc.oneof(line, markup)).map((parts) => parts.join('').trim());
  fc.assert(
    fc.property(line, paragraph, someTags, (title, comment, names) => {
      const tags = names.map((name, id) => ({ id, name }));
      const url = 'https://example.org/?a=1&lt=2&copy;=3"';
      const times = { created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-02T00:00:00.000Z' };
      const html = formatNetscapeFile([makeBookmark({ url, title, comment, tags, ...times })]).join('');
      const { entries } = readBookmarkFile(Buffer.from(html), { foldersAsTags: true });
      expect(entries).toEqual([{ url, title, comment, tags: names, ...times }]);
    }),
    { numRuns: 500 },
  );
});
