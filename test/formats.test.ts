import { afterEach, expect, test, vi } from 'vitest';
import { displayWidth, fitToWidth, toLine, writeOutControls } from '../src/cli/display-text.ts';
import { readDate } from '../src/formats/entry.ts';
import { parseNetscape } from '../src/formats/netscape.ts';
import { readBookmarkFile } from '../src/formats/read-file.ts';

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

test('of two bookmarks with the same url, an ambiguous date does not replace a readable one', () => {
  const readable = '2020-05-06T07:08:09Z';
  for (const dates of [
    [readable, '01/02/2020'],
    ['01/02/2020', readable],
    [readable, '2021-01-01'],
  ]) {
    const rows = dates.map((date) => `https://example.org/,${date}`);
    const { entries } = readBookmarkFile(Buffer.from(['url,created_at', ...rows].join('\n')), {
      foldersAsTags: true,
    });
    expect(
      entries.map((entry) => entry?.created_at),
      dates.join(),
    ).toEqual(['2020-05-06T07:08:09.000Z']);
  }
});

test('a line break in a description of a bookmark file is kept', () => {
  const html = `<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>
    <DT><A HREF="https://example.org/">A</A><DD>one<br>two</DL>`;
  expect(parseNetscape(html).bookmarks[0]?.comment?.join('\n')).toMatch(/^one\s*\n\s*two/);
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
