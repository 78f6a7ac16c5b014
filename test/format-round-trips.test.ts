import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Bookmark } from '../src/domain/resources.ts';
import { splitFolders } from '../src/formats/folders.ts';
import { readBookmarkFile } from '../src/formats/read-file.ts';
import { readRows } from '../src/formats/table.ts';
import { CSV_HEAD, formatCsv } from '../src/formats/write-csv.ts';
import { formatNetscapeFile } from '../src/formats/write-netscape.ts';
import { makeBookmark } from './support/bookmark-samples.ts';
import { type TestUser, useService } from './support/service.ts';

/** Checks that an export followed by an import keeps everything that docs/formats.md promises to keep. */

const service = useService();

/** Returns a text as the service stores it. */
const clean = (text: string): string =>
  text.replaceAll('\0', '').toWellFormed().trim().normalize('NFC').trim();

const anyText = fc.string({ unit: 'binary' });

/** Texts that a program could misinterpret when it reads or writes a file. */
const TEXTS = [
  '=1+1',
  "'=1+1",
  '@name',
  '-5',
  '+5',
  "'",
  '"a","b"',
  'two\nlines',
  'two\r\nlines\rand one',
  'a\u0001\u001b[2Jb\u2028c\u202e',
  '<DT><A HREF="https://example.org/">',
  '</DL><p>',
  '&amp;&#10;',
  '<blockquote>said</blockquote>',
  'a[linkding-notes]b[/linkding-notes]',
  'x'.repeat(2_000),
];
const TAGS = [
  ...[
    'a',
    'A/B',
    'A',
    'A/B/C',
    'a\\/b',
    'A\\/B/C',
    '\\',
    '\\\\',
    '/',
    'B/',
    '/B',
    'x,y',
    'x,y/z',
    'a,/',
    '[q',
    '["q"]',
    'a|b',
  ],
  ...[
    'toread',
    'unread',
    'archived',
    'favorite',
    'linkding:archived',
    '=1',
    '@todo',
    '-',
    'two\nlines',
    'a\u0001b',
  ],
  'y'.repeat(255),
];

const text = fc.oneof(fc.constantFrom('', ...TEXTS), anyText).map(clean);
const tagName = fc
  .oneof(fc.constantFrom(...TAGS), anyText)
  .map(clean)
  .filter(Boolean);
const time = fc.integer({ min: 1_000, max: 4_000_000_000_000 }).map((ms) => new Date(ms).toISOString());
const bookmark = fc.record({
  title: text,
  comment: fc.oneof(text, fc.constant('z\n'.repeat(4_999))).map(clean),
  tags: fc.uniqueArray(tagName, { maxLength: 5, selector: (tag) => tag.toLowerCase() }),
  created_at: time,
  updated_at: time,
});

/** Generates a collection in which no two tags differ only in case. */
const collection = fc.array(bookmark, { maxLength: 6 }).map((drafts) => {
  const byKey = new Map(drafts.flatMap(({ tags }) => tags).map((tag) => [tag.toLowerCase(), tag]));
  return drafts.map(({ tags, ...rest }, id) => ({
    url: `https://example.org/${id}?a="b"&lt=c,d'#<e>`,
    ...rest,
    tags: tags.map((tag) => byKey.get(tag.toLowerCase())!),
  }));
});
type Given = Pick<Bookmark, 'url' | 'title' | 'comment' | 'created_at' | 'updated_at'> & { tags: string[] };

const toBookmarks = (given: Given[]): Bookmark[] =>
  given.map(({ tags, ...rest }, id) =>
    makeBookmark({ id, ...rest, tags: tags.map((name) => ({ id: 1, name })) }),
  );

const sortTags = (tags: string[]) => [...new Set(tags.map((tag) => tag.trim()).filter(Boolean))].sort();

const read = (chunks: string[]) =>
  readBookmarkFile(Buffer.from(chunks.join('')), { foldersAsTags: true })
    .entries.map((entry) => ({ ...entry, tags: sortTags(entry.tags as string[]) }))
    .sort((a, b) => (a.url < b.url ? -1 : 1));

const withSortedTags = (given: Given[]) => given.map((each) => ({ ...each, tags: sortTags(each.tags) }));

test('CSV restores everything', () => {
  fc.assert(
    fc.property(collection, (given) => {
      expect(read([CSV_HEAD, ...toBookmarks(given).map(formatCsv)])).toEqual(withSortedTags(given));
    }),
    { numRuns: 300 },
  );
});

/** Texts in which a spreadsheet could find a formula, wherever it splits cells. */
const sheetText = fc
  .array(fc.constantFrom('=', '+', '-', '@', '＝', "'", '"', ';', '\t', '\n', '\r', ',', ' ', 'a', '=1+1'), {
    maxLength: 8,
  })
  .map((parts) => clean(parts.join('')));

test('no spreadsheet finds a formula in exported CSV, and an export of the import is the same byte for byte', () => {
  const time = '2024-01-01T00:00:00.000Z';
  fc.assert(
    fc.property(fc.array(fc.tuple(sheetText, sheetText, sheetText), { maxLength: 4 }), (texts) => {
      const given = texts.map(([title, comment, tag], index) => ({
        ...{ url: `https://example.org/${index}`, title, comment, tags: tag === '' ? [] : [tag] },
        ...{ created_at: time, updated_at: time },
      }));
      const file = [CSV_HEAD, ...toBookmarks(given).map(formatCsv)].join('');
      // A spreadsheet that splits at `;` or tabs ignores quotes inside a cell.
      expect(file).not.toMatch(/[;\t\r\n]"*[=+\-@＝]/);
      for (const row of readRows(file, ',')) for (const cell of row) expect(cell).not.toMatch(/^[=+\-@＝]/);
      const again = read([file]);
      expect([CSV_HEAD, ...toBookmarks(again as Given[]).map(formatCsv)].join('')).toBe(file);
    }),
    { numRuns: 1_000 },
  );
});

test('HTML restores everything except milliseconds and commas in tags', () => {
  const seconds = (at: string) => `${at.slice(0, 19)}.000Z`;
  fc.assert(
    fc.property(collection, fc.boolean(), (given, tagFolders) => {
      const held = given.map((each) => ({
        ...each,
        tags: each.tags.map((name) => (splitFolders(name) ? name : name.replaceAll(',', ' '))),
        created_at: seconds(each.created_at),
        updated_at: seconds(each.updated_at),
      }));
      expect(read(formatNetscapeFile(toBookmarks(given), { tagFolders }))).toEqual(withSortedTags(held));
    }),
    { numRuns: 300 },
  );
});

test('JSON restores everything, including several bookmarks with one url', async () => {
  const exported = async (user: TestUser): Promise<Given[]> =>
    (await user.post('/export')).body.bookmarks.map(({ id: _, tags, ...rest }: Bookmark) => ({
      ...rest,
      tags: tags.map(({ name }) => name),
    }));
  await fc.assert(
    fc.asyncProperty(collection, fc.boolean(), async (given, isTwice) => {
      // An account keeps the spelling of a tag even when no bookmark has the tag. So each import needs a new account.
      const [one, other] = [await service.user(), await service.user()];
      const bookmarks = isTwice ? [...given, ...given] : given;
      const imported = await one.post('/import', { mode: 'replace', bookmarks });
      expect(imported.body).toEqual({ imported: bookmarks.length, skipped: 0, errors: [] });
      const before = await exported(one);
      const { bookmarks: file } = (await one.post('/export')).body;
      const { entries, refusals } = readBookmarkFile(Buffer.from(JSON.stringify({ bookmarks: file })), {
        foldersAsTags: true,
      });
      expect(refusals).toEqual([]);
      await other.post('/import', { mode: 'replace', bookmarks: entries });
      expect(await exported(other)).toEqual(before);
      expect(withSortedTags(before)).toEqual(withSortedTags(bookmarks));
    }),
    { numRuns: 30 },
  );
});

test('no cell of exported CSV is a formula, and cells in files of other programs are imported unchanged', () => {
  const titles = ['=1+1', '+1', '-1', '@a', "'=1", "it's", "'a'"];
  const given = titles.map((title, index) => ({
    ...{ url: `https://example.org/${index}`, title, comment: title, tags: ['-a'] },
    ...{ created_at: '2024-01-01T00:00:00.000Z', updated_at: '2024-01-01T00:00:00.000Z' },
  }));
  const rows = toBookmarks(given).map(formatCsv);
  for (const row of rows) expect(row).not.toMatch(/(^|,)"?[=+\-@]/);
  expect(read([CSV_HEAD, ...rows])).toEqual(given);
  expect(read(['url,title\n', "https://example.org/,'=1\n"])).toMatchObject([{ title: "'=1" }]);
});
