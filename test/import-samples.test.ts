import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compareByCodePoints, foldText } from '../src/domain/text.ts';
import { readBookmarkFile } from '../src/formats/read-file.ts';

// Reads the files that other programs wrote, and compares all that an import takes from them.

const SAMPLES = join(import.meta.dirname, 'samples');

const page = (rest: {
  url: string;
  title?: string;
  comment?: string;
  tags?: string[];
  created?: string;
}) => ({
  title: '',
  comment: '',
  tags: [],
  ...rest,
});

const ding = 'https://example.org/ding?a=1&copy=2';
const search = 'https://example.org/search?q=a&b=%C3%A9&lang=en#top';

interface Expected {
  bookmarks: object[];
  report: { format: string; combined: number; leftOut: string[]; changes?: string[] };
}

/**
 * The expected content of each sample. Tags are in the order in which the service returns them. Dates that are missing
 * here are not compared.
 */
const EXPECTED: Record<string, Expected> = {
  'chrome.html': {
    report: { format: 'netscape', combined: 1, leftOut: ['A bookmarklet', 'Settings'] },
    bookmarks: [
      page({ url: 'https://example.org/bar', title: 'On the bar', created: '2023-11-29T23:20:00.000Z' }),
      page({
        url: search,
        title: `Tom & Jerry's <guide> to "quotes"`,
        tags: ['Development'],
        created: '2023-12-01T00:00:03.000Z',
      }),
      page({ url: 'https://example.org/deep', title: 'Deep down', tags: ['Development/C & C++'] }),
      page({ url: 'https://example.org/after', title: 'After the inner folder', tags: ['Development'] }),
      page({ url: 'https://example.org/%E6%97%A5%E6%9C%AC', title: '日本語のページ 🗾', tags: ['日本語'] }),
    ],
  },
  'firefox.html': {
    report: { format: 'netscape', combined: 0, leftOut: ['Recent Tags'] },
    bookmarks: [
      page({
        url: 'https://support.mozilla.example/products/firefox',
        title: 'Get Help',
        tags: ['Mozilla Firefox'],
      }),
      page({
        url: 'https://example.org/tagged',
        title: 'With tags',
        comment: 'A description in\ntwo lines, with an <em> in it',
        tags: ['reading', 'to do', 'Über'],
        created: '2023-11-14T22:13:30.000Z',
      }),
      page({ url: 'https://example.org/toolbar', title: 'On the toolbar' }),
      page({ url: 'http://xn--bcher-kva.example/', title: 'Bücher' }),
    ],
  },
  'safari.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({ url: 'https://www.apple.example/', title: 'Apple', tags: [] }),
      page({ url: 'https://weather.example/', title: 'Weather', tags: ['News & Weather'] }),
      page({ url: 'https://long-read.example/a?b=1&c=2', title: 'A long read', tags: [] }),
    ],
  },
  'google-bookmarks.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'http://maps.example/?q=Z%C3%BCrich&ftid=0x47900a076b2da745:0xe9704f64fa1de8c0',
        title: 'Zürich',
        tags: ['Places'],
        created: '2019-09-12T13:22:04.481Z',
      }),
      page({
        url: 'http://maps.example/ms',
        title: 'In milliseconds',
        tags: ['Places'],
        created: '2019-09-12T13:22:04.481Z',
      }),
      page({
        url: 'http://maps.example/1601',
        title: 'As Chromium counts',
        tags: ['Places'],
        created: '2023-11-29T23:33:21.000Z',
      }),
      page({ url: 'http://maps.example/none', title: 'Without a date', tags: ['Places'] }),
    ],
  },
  'pinboard.json': {
    report: { format: 'pinboard', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/pinned',
        title: 'A pinned page',
        comment: 'First line\nSecond line with ümlauts',
        tags: ['dev:tools', 'via:friend', 'web'],
        created: '2023-04-05T06:07:08.000Z',
      }),
      page({
        url: 'https://example.org/private?x=1&y=2',
        title: 'Private & unread',
        comment: 'What somebody wrote',
        tags: ['toread'],
        created: '2010-08-31T03:51:53.000Z',
      }),
      page({ url: 'http://example.org/untitled', tags: ['.private', 'Foo'] }),
    ],
  },
  'pinboard.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/pinned',
        title: 'A pinned page',
        comment: 'First line\nSecond line with ümlauts',
        tags: ['dev:tools', 'via:friend', 'web'],
        created: '2023-04-05T06:07:08.000Z',
      }),
      page({
        url: 'https://example.org/private?x=1&y=2',
        title: 'Private & unread',
        comment: 'What somebody wrote, with a link (https://elsewhere.example/)',
        tags: ['toread'],
      }),
      page({ url: 'http://example.org/untitled', created: '2009-07-10T11:12:13.000Z' }),
    ],
  },
  'pinboard.xml': {
    report: { format: 'pinboard', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/pinned',
        title: 'A pinned page & more',
        comment: 'First line\nSecond line',
        tags: ['dev:tools', 'web'],
      }),
      page({ url: 'https://example.org/private?x=1&y=2', title: 'Private', tags: ['toread'] }),
    ],
  },
  'raindrop.csv': {
    report: { format: 'raindrop', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/rain?a=1&b=2#part',
        title: 'Saved, "quoted" title',
        comment:
          'First line of the note\nand the second\n\nWhat the page says of itself, with a comma\n\n' +
          'Highlight:first words\nsecond words',
        tags: ['favorite', 'go', 'reading', 'Work/Invoices 2024'],
        created: '2024-01-02T03:04:05.123Z',
      }),
      page({ url: 'https://example.org/drop', title: 'Unsorted page', created: '2023-12-31T23:59:59.000Z' }),
      page({
        url: 'https://example.org/untitled',
        tags: ['Kuchen & Törtchen', 'süß'],
        created: '2024-01-02T03:04:05.000Z',
      }),
    ],
  },
  'raindrop.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({ url: 'https://example.org/drop', title: 'Unsorted page' }),
      page({
        url: 'https://example.org/rain?a=1&b=2',
        title: "You don't have time",
        comment: 'What the page says of itself…',
        tags: ['favorite', 'go', 'reading', 'Work/Invoices'],
      }),
    ],
  },
  'linkding.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: ding,
        title: 'A <b> in a title',
        comment: 'What the page says\n\n# My notes\n\n* with **marks** & "quotes"',
        tags: ['self-hosted', 'toread', 'web'],
        created: '2023-07-22T04:26:40.000Z',
      }),
      page({ url: 'https://example.org/archived', title: 'Archived', tags: ['archived', 'web'] }),
      page({
        url: 'https://example.org/notes-only',
        title: 'https://example.org/notes-only',
        comment: 'Only notes',
      }),
    ],
  },
  'linkding.json': {
    report: { format: 'linkding', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: ding,
        title: 'A <b> in a title',
        comment: 'What the page says\n\n# My notes',
        tags: ['self-hosted', 'toread', 'web'],
        created: '2023-07-22T04:26:40.123Z',
      }),
      page({ url: 'https://example.org/archived', title: 'What the page calls itself', tags: ['archived'] }),
    ],
  },
  'bookmark-service.json': {
    report: { format: 'bookmark-service', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/own',
        title: 'Our own',
        comment: 'As it was',
        tags: ['kept'],
        created: '2020-02-03T04:05:06.789Z',
      }),
      page({ url: 'https://example.org/own', title: 'The same again' }),
      page({ url: 'mailto:somebody@example.org', title: 'No page' }),
    ],
  },
  'karakeep.json': {
    report: { format: 'karakeep', combined: 0, leftOut: ['A thought'] },
    bookmarks: [
      page({
        url: 'https://example.org/keep',
        title: 'Kept',
        comment: 'My note\n\nWhat the page says',
        tags: ['archived', 'dev', 'favorite', 'Work/Databases'],
        created: '2023-11-14T22:13:20.000Z',
      }),
    ],
  },
  'instapaper.csv': {
    report: { format: 'instapaper', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/1',
        title: 'One',
        comment: 'A quotation',
        tags: ['a, b', 'ml', 'toread'],
        created: '2022-04-15T05:20:00.000Z',
      }),
      page({ url: 'https://example.org/2', title: 'Two', tags: ['archived'] }),
      page({ url: 'https://example.org/3', title: 'Three', tags: ['Recipes'] }),
    ],
  },
  'pocket.html': {
    report: { format: 'pocket', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/a?b=1&c=2',
        title: 'Great & useful',
        tags: ['design', 'tools', 'toread'],
        created: '2020-09-13T12:26:40.000Z',
      }),
      page({ url: 'https://example.org/read', title: 'Read', tags: ['archived'] }),
    ],
  },
  'pocket.csv': {
    report: { format: 'pocket', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/c',
        title: 'Hello, world',
        tags: ['a', 'b', 'toread'],
        created: '2020-09-13T12:26:40.000Z',
      }),
      page({ url: 'https://example.org/d', title: 'Done', tags: ['archived'] }),
    ],
  },
  'firefox.json': {
    report: { format: 'firefox', combined: 0, leftOut: ['Recent Tags'] },
    bookmarks: [
      page({
        url: 'https://example.org/deep',
        title: 'Deep',
        tags: ['reading', 'to do', 'Work/A\\/B'],
        created: '2023-11-14T22:13:20.123Z',
      }),
      page({ url: 'https://example.org/bar', title: 'On the bar' }),
    ],
  },
  'chrome-bookmarks.json': {
    report: { format: 'chrome', combined: 0, leftOut: ['A bookmarklet'] },
    bookmarks: [
      page({
        url: 'https://example.org/bar',
        title: 'On the bar',
        tags: ['Work/Databases'],
        created: '2023-11-14T22:13:20.000Z',
      }),
    ],
  },
  'buku.json': {
    report: { format: 'buku', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://a.example/?a=1&b',
        title: 'A <b>',
        comment: 'A comment\nin two lines & more',
        tags: ['base', 'data', 'to do', 'x'],
      }),
      page({ url: 'https://b.example/', title: 'B' }),
    ],
  },
  'onetab.txt': {
    report: { format: 'onetab', combined: 0, leftOut: [] },
    bookmarks: [
      page({ url: 'https://example.org/one', title: 'One | two' }),
      page({ url: 'https://example.org/bare' }),
      page({ url: 'https://example.org/group', title: 'In another group' }),
    ],
  },
  'table.csv': {
    report: { format: 'csv', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://example.org/semi',
        title: 'Semi; colon',
        tags: ['one', 'two'],
        created: '2024-05-06T07:08:09.000Z',
      }),
      page({ url: 'https://example.org/bare' }),
    ],
  },
  'script-in-description.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c01.example/a',
        title: 'First',
        comment: 'Notes about the async attribute of <script> and where to put it',
        created: '2023-11-14T22:13:20.000Z',
      }),
      page({ url: 'https://c01.example/b', title: 'Second', created: '2023-11-14T22:13:21.000Z' }),
      page({ url: 'https://c01.example/c', title: 'Third', created: '2023-11-14T22:13:22.000Z' }),
    ],
  },
  'note-attribute.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c13.example/a',
        title: 'Soil',
        comment: 'How to test the soil',
        tags: ['garden', 'soil'],
        created: '2014-08-23T10:13:03.000Z',
      }),
      page({
        url: 'https://c13.example/b',
        title: 'Water',
        comment: 'Water in the morning',
        tags: ['garden'],
        created: '2014-08-23T10:13:04.000Z',
      }),
    ],
  },
  'wrapped-lines.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({ url: 'https://c22.example/a', title: 'A title that goes on', tags: ['Long folder name'] }),
    ],
  },
  'long-dates.html': {
    report: { format: 'netscape', combined: 0, leftOut: [], changes: ['date-dropped: 1700000000-3'] },
    bookmarks: [
      page({ url: 'https://c27.example/ms', title: 'Milliseconds', created: '2023-11-14T22:13:20.000Z' }),
      page({
        url: 'https://c27.example/filetime',
        title: '100 ns since 1601',
        created: '2023-11-14T22:13:20.000Z',
      }),
      page({ url: 'https://c27.example/ns', title: 'Nanoseconds', created: '2023-11-14T22:13:20.000Z' }),
      { ...page({ url: 'https://c27.example/junk', title: 'Junk' }), created: undefined },
    ],
  },
  'links-without-dt.html': {
    report: { format: 'netscape', combined: 0, leftOut: [] },
    bookmarks: [
      page({ url: 'https://c30.example/a', title: 'First', comment: 'about the first', tags: ['one'] }),
      page({ url: 'https://c30.example/b', title: 'Second', comment: 'about the second', tags: ['two'] }),
      page({ url: 'https://c30.example/c', title: 'Third' }),
    ],
  },
  'folder-name-of-300.html': {
    report: {
      format: 'netscape',
      combined: 0,
      leftOut: [],
      changes: [`folder-shortened: ${'folder name '.repeat(25).slice(0, 200)}…`],
    },
    bookmarks: [
      page({
        url: 'https://c32.example/a',
        title: 'In a folder with a long name',
        tags: [`${'folder name '.repeat(25).slice(0, 254)}…`],
      }),
    ],
  },
  'opera-custom-root.json': {
    report: { format: 'chrome', combined: 0, leftOut: ['Deleted'] },
    bookmarks: [
      page({ url: 'https://c35.example/bar', title: 'On the bar', created: '2023-11-14T22:13:20.000Z' }),
      page({ url: 'https://c35.example/dial', title: 'Dial' }),
      page({ url: 'https://c35.example/unsorted', title: 'Unsorted' }),
      page({ url: 'https://c35.example/song', title: 'Song', tags: ['Music'] }),
    ],
  },
  'firefox-annos.json': {
    report: { format: 'firefox', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c36.example/a',
        title: 'With a description',
        comment: 'text from the properties window',
        created: '2014-05-13T16:53:20.000Z',
      }),
    ],
  },
  'firefox-tags-folder.json': {
    report: { format: 'firefox', combined: 2, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c37.example/a',
        title: 'Tagged',
        tags: ['linux', 'to do'],
        created: '2014-05-13T16:53:20.000Z',
      }),
      page({ url: 'https://c37.example/b', title: 'Plain' }),
    ],
  },
  'omnivore.json': {
    report: { format: 'omnivore', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c40.example/a',
        title: 'Article',
        comment: 'What it says',
        tags: ['archived', 'Tea', 'to do'],
        created: '2023-05-01T08:00:00.000Z',
      }),
    ],
  },
  'wallabag.json': {
    report: { format: 'wallabag', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c41.example/a',
        title: 'Entry',
        tags: ['archived', 'favorite', 'long read', 'tea'],
        created: '2020-06-01T06:00:00.000Z',
      }),
      page({ url: 'https://c41.example/b', created: '2020-06-03T06:00:00.000Z' }),
    ],
  },
  'pinboard-null.json': {
    report: { format: 'pinboard', combined: 0, leftOut: [''] },
    bookmarks: [
      page({
        url: 'https://c45.example/a',
        title: 'Good',
        tags: ['a', 'b'],
        created: '2020-01-02T03:04:05.000Z',
      }),
    ],
  },
  'raindrop-from-spreadsheet.csv': {
    report: { format: 'raindrop', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c50.example/a',
        title: 'Garden',
        tags: ['favorite', 'Home', 'soil', 'water'],
        created: '2023-04-05T06:07:00.000Z',
      }),
      page({ url: 'https://c50.example/b', title: 'Shed', created: '2023-04-05T06:07:00.000Z' }),
    ],
  },
  'crlf-header-lf-rows.csv': {
    report: { format: 'pocket', combined: 0, leftOut: [] },
    bookmarks: [
      page({
        url: 'https://c51.example/a',
        title: 'One',
        tags: ['toread'],
        created: '2024-10-10T16:12:32.000Z',
      }),
      page({ url: 'https://c51.example/b', title: 'Two', tags: ['toread'] }),
      page({ url: 'https://c51.example/c', title: 'Three', tags: ['archived'] }),
    ],
  },
};

const byFoldedName = (one: string, other: string) => compareByCodePoints(foldText(one), foldText(other));

test.each(Object.keys(EXPECTED))('reads %s', (name) => {
  const { bookmarks, report } = EXPECTED[name]!;
  const parsed = readBookmarkFile(readFileSync(join(SAMPLES, name)), { foldersAsTags: true });
  const nameOf = (tag: string | { name: string }) => (typeof tag === 'string' ? tag : tag.name);
  const read = parsed.entries.map(({ url, title, comment, tags = [], created_at }) => ({
    ...{ url, title, comment, tags: tags.map(nameOf).sort(byFoldedName), created: created_at },
  }));
  expect(read).toMatchObject(bookmarks);
  expect({
    ...{ format: parsed.format, combined: parsed.combined },
    leftOut: parsed.leftOut.map(({ title }) => title),
    changes: parsed.changes.map(({ change, text }) => `${change}: ${text}`),
  }).toEqual({ changes: [], ...report });
});

test('each sample has its expected content', () => {
  expect(Object.keys(EXPECTED).sort()).toEqual(readdirSync(SAMPLES).sort());
});
