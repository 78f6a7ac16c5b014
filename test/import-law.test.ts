import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readBookmarkFile } from '../src/formats/read-file.ts';

/**
 * The first law of an import: every link of a file is imported, combined with another one, or named as left out. The
 * files are written as careless programs write them: without escaping, with odd values, and with damaged entries.
 */

const read = (file: string | Uint8Array) =>
  readBookmarkFile(typeof file === 'string' ? Buffer.from(file) : file, { foldersAsTags: true });

/** Checks that the report on a file accounts for each of the links that were written into it. */
function expectAll(file: string, urls: readonly unknown[]): void {
  const { entries, combined, leftOut } = read(file);
  expect(entries.length + combined + leftOut.length, file).toBe(urls.length);
  const named = new Set([...entries, ...leftOut].map(({ url }) => url));
  for (const url of urls) if (typeof url === 'string') expect(named, file).toContain(url);
}

const webUrl = fc.nat(30).map((n) => `https://example.org/${n}`);
const otherUrl = fc.constantFrom('javascript:alert(1)', 'file:///etc/hosts', 'place:sort=8', 'about:blank');
const url = fc.oneof({ weight: 5, arbitrary: webUrl }, { weight: 1, arbitrary: otherUrl });
/** A value of a JSON file where a url is expected. */
const anyUrl = fc.oneof(
  { weight: 8, arbitrary: url },
  { weight: 1, arbitrary: fc.constantFrom(null, false, 7, '') },
);

const MARKUP = [
  ...[
    '<script>',
    '</script>',
    '<style>',
    '<textarea>',
    '<title>',
    '<!--',
    '-->',
    '<![CDATA[',
    '<?',
    '<T>',
    '< b',
  ],
  ...[
    '<b>',
    '<dl>',
    '</DL>',
    '<dd>',
    '<h3>',
    '</h3>',
    '<hr>',
    '<p>',
    '<li>',
    '<br/>',
    '<a>',
    '<form action="x">',
  ],
  ...[
    '"',
    "'",
    '&',
    '&amp;',
    '&#0;',
    '>',
    '=',
    '\n',
    '\r\n  ',
    '\t',
    ',',
    ';',
    '|',
    '\\',
    '/',
    'ü',
    '𝄞',
    'x',
  ],
];
const rawText = fc.array(fc.constantFrom(...MARKUP), { maxLength: 6 }).map((parts) => parts.join(' '));
const anyValue = fc.oneof(
  rawText,
  fc.constantFrom(null, false, 0, 17, [], {}, [null], ['a'], '2020-01-01', 'soon'),
);

interface Link {
  url: string;
  title: string;
  comment: string;
}
const link: fc.Arbitrary<Link> = fc.record({ url, title: rawText, comment: rawText });
const links = fc.array(link, { minLength: 1, maxLength: 8 });
const urlsOf = (of: readonly { url: unknown }[]) => of.map((each) => each.url);

const RUNS = { numRuns: 500 };

describe('every link is imported, combined or named', () => {
  test('in HTML without escaping', () => {
    const style = fc.record({
      hasDt: fc.boolean(),
      quote: fc.constantFrom('"', "'", ''),
      lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
      closes: fc.boolean(),
      folder: fc.option(rawText),
      date: fc.constantFrom('', ' ADD_DATE="1700000000"', ' ADD_DATE="soon" TAGS="a,<b>"'),
    });
    fc.assert(
      fc.property(links, style, (of, { hasDt, quote, lineEnd, closes, folder, date }) => {
        const lines = of.flatMap((each) => [
          `${hasDt ? '<DT>' : ''}<A HREF=${quote}${each.url}${quote}${date}>${each.title}${closes ? '</A>' : ''}`,
          ...(each.comment === '' ? [] : [`<DD>${each.comment}`]),
        ]);
        const body = folder === null ? lines : [`<DT><H3>${folder}</H3>`, '<DL><p>', ...lines, '</DL><p>'];
        expectAll(
          ['<!DOCTYPE NETSCAPE-Bookmark-file-1>', '<DL><p>', ...body, '</DL><p>'].join(lineEnd),
          urlsOf(of),
        );
      }),
      RUNS,
    );
  });

  test('in tables with any separator, line endings and lone quotes', () => {
    const cell = fc
      .array(fc.constantFrom(...MARKUP.filter((part) => !/["\r\n]/.test(part))), { maxLength: 4 })
      .map((parts) => parts.join(' '));
    const row = fc.record({
      url,
      title: cell,
      quoting: fc.constantFrom('full', 'opened', 'none'),
      lineEnd: fc.constantFrom('\n', '\r\n'),
    });
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(',', ';', '\t'),
        fc.boolean(),
        (rows, separator, hasLine) => {
          const format = ({ title, quoting }: { title: string; quoting: string }) => {
            const safe = title.replaceAll(separator, ' ').trim();
            if (quoting === 'full') return `"y${safe}\n${safe}"`;
            return quoting === 'opened' ? `"${safe}x` : safe;
          };
          const head = `${hasLine ? `sep=${separator}\r\n` : ''}url${separator}title\r\n`;
          const file = rows.map((each) => `${each.url}${separator}${format(each)}${each.lineEnd}`).join('');
          expectAll(head + file, urlsOf(rows));
        },
      ),
      RUNS,
    );
  });

  const row = fc.record({ url: anyUrl, a: anyValue, b: anyValue, c: anyValue, d: anyValue });
  type Row = { url: unknown; a: unknown; b: unknown; c: unknown; d: unknown };

  /** How each service writes a list. */
  const LISTS: Record<string, (rows: Row[]) => unknown> = {
    pinboard: (rows) =>
      rows.map(({ url: href, a, b, c, d }) => ({ href, description: a, extended: b, time: c, tags: d })),
    linkding: (rows) => ({
      results: rows.map(({ url, a, b, c, d }) => ({ url, title: a, notes: b, tag_names: c, date_added: d })),
    }),
    wallabag: (rows) =>
      rows.map(({ url, a, b, c, d }) => ({
        url,
        title: a,
        is_archived: b,
        is_starred: 0,
        tags: c,
        created_at: d,
      })),
    omnivore: (rows) =>
      rows.map(({ url, a, b, c, d }) => ({ url, slug: 's', title: a, labels: b, state: c, savedAt: d })),
    karakeep: (rows) => ({
      bookmarks: rows.map(({ url, a, b, c, d }) => ({
        content: { url },
        title: a,
        tags: b,
        lists: c,
        createdAt: d,
      })),
      lists: [{ id: 'a', name: 'A', parentId: 'a' }],
    }),
    linkwarden: (rows) => ({
      collections: [
        {
          id: 1,
          name: 'C',
          parentId: 1,
          links: rows.map(({ url, a, b, c, d }) => ({ url, name: a, description: b, tags: c, createdAt: d })),
        },
      ],
    }),
    buku: (rows) =>
      rows.map(({ url: uri, a, b, c }, index) => ({ uri, index, title: a, description: b, tags: c })),
    json: (rows) => rows.map(({ url, a, b, c, d }) => ({ url, title: a, note: b, labels: c, time_added: d })),
    chrome: (rows) => ({
      roots: {
        bookmark_bar: {
          name: 'Bar',
          children: rows.map(({ url, a, d }) => ({ url, name: a, date_added: d })),
        },
        custom_root: {
          speedDial: { children: [] },
          trash: { children: [{ url: 'https://trash.example/' }] },
        },
      },
    }),
    firefox: (rows) => ({
      type: 'text/x-moz-place-container',
      children: [
        { root: 'tagsFolder', children: [{ title: 'tag', children: [{ uri: 'https://tagged.example/' }] }] },
        {
          root: 'menu',
          children: rows.map(({ url: uri, a, b, d }) => ({ uri, title: a, annos: b, dateAdded: d })),
        },
      ],
    }),
  };
  const EXTRA: Record<string, string> = {
    chrome: 'https://trash.example/',
    firefox: 'https://tagged.example/',
  };

  test.each(Object.keys(LISTS))('in JSON of %s with values of any type', (name) => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), (rows) => {
        const file = JSON.stringify(LISTS[name]!(rows as Row[]));
        expect(read(file).format).toBe(name);
        expectAll(file, [...urlsOf(rows), ...(EXTRA[name] === undefined ? [] : [EXTRA[name]])]);
      }),
      { numRuns: 200 },
    );
  });

  test('in lists of addresses', () => {
    fc.assert(
      fc.property(fc.array(url, { minLength: 1, maxLength: 8 }), rawText, (urls, title) => {
        const lines = ['https://first.example/', ...urls].map(
          (each) => `${each} | ${title.replace(/[\r\n]/g, ' ')}`,
        );
        expectAll(lines.join('\n\n'), ['https://first.example/', ...urls]);
      }),
      RUNS,
    );
  });

  test('in XML of Pinboard', () => {
    fc.assert(
      fc.property(links, (of) => {
        const quote = (text: string) =>
          text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
        const posts = of.map(
          (each) => `<post href="${each.url}" description="${quote(each.title)}" extended="" />`,
        );
        expectAll(`<?xml version="1.0"?>\n<posts user="a">${posts.join('\n')}</posts>`, urlsOf(of));
      }),
      RUNS,
    );
  });
});

const html = (...lines: string[]) =>
  ['<!DOCTYPE NETSCAPE-Bookmark-file-1>', '<DL><p>', ...lines, '</DL><p>'].join('\n');
const a = 'https://a.example/';
const b = 'https://b.example/';

/** Files like those in reports about other programs: what to import, and what to name. */
const REPORTS: Record<string, { file: string | Uint8Array; entries: object[]; named?: string[] }> = {
  'a list of Instapaper in HTML': {
    file: `<html><head><title>Instapaper: Export</title></head><body><h1>Unread</h1><ol><li><a href="${a}">A</a></li></ol><h1>Recipes</h1><ol><li><a href="${b}">B</a></li></ol></body></html>`,
    entries: [
      { url: a, tags: ['toread'] },
      { url: b, tags: ['Recipes'] },
    ],
  },
  'a link in a description': {
    file: html(
      `<DT><A HREF="${a}">A</A>`,
      `<DD>see <a href="${b}">this page</a> for more`,
      `<DT><A HREF="${b}">B</A>`,
    ),
    entries: [{ url: a, comment: `see this page (${b}) for more` }, { url: b }],
  },
  'a note without an address': {
    file: html('<DT><A HREF="?6SIQOA" ADD_DATE="1414176161">Note</A>', '<DD>E:.', `<DT><A HREF="${a}">A</A>`),
    entries: [{ url: a, comment: '' }],
    named: ['?6SIQOA'],
  },
  'a separator after a description': {
    file: html(`<DT><A HREF="${a}">A</A>`, '<DD>kept', '<HR>', `<DT><A HREF="${b}">B</A>`),
    entries: [
      { url: a, comment: 'kept' },
      { url: b, comment: '' },
    ],
  },
  'an address without its closing quote': {
    file: html(`<DT><A HREF="${a}>A</A>`, `<DT><A HREF="${b}">B</A>`),
    entries: [
      { url: a, title: 'A' },
      { url: b, title: 'B' },
    ],
  },
  'an address in several lines': {
    file: html('<DT><A HREF="https://a.exam\n\tple/">A</A>'),
    entries: [{ url: a }],
  },
  'a file that ends inside a link': {
    file: `<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>\n<DT><A HREF="${a}">A</A>\n<DT><A HREF="https://b.exam`,
    entries: [{ url: a }],
    named: ['"https://b.exam'],
  },
  'folders with the same name in different places': {
    file: html(
      '<DT><H3>A</H3><DL><p>',
      '<DT><H3>X</H3><DL><p>',
      `<DT><A HREF="${a}">A</A>`,
      '</DL><p></DL><p>',
      '<DT><H3>B</H3><DL><p>',
      '<DT><H3>X</H3><DL><p>',
      `<DT><A HREF="${b}">B</A>`,
      '</DL><p></DL><p>',
    ),
    entries: [{ tags: ['A/X'] }, { tags: ['B/X'] }],
  },
  'an element of HTML in a title': {
    file: html(
      `<DT><H3>Dev</H3><DL><p>`,
      `<DT><A HREF="${a}">The <dl> element</A>`,
      '</DL><p>',
      `<DT><A HREF="${b}">B</A>`,
    ),
    entries: [
      { title: 'The <dl> element', tags: ['Dev'] },
      { title: 'B', tags: [] },
    ],
  },
  'a feed without a page': {
    file: html(`<DT><A FEEDURL="${a}">News</A>`),
    entries: [{ url: a, title: 'News' }],
  },
  'a page of the browser': {
    file: html(
      '<DT><A HREF="about:config">Settings</A>',
      '<DT><A HREF="chrome-extension://x/y">Extension</A>',
      `<DT><A HREF="${a}">A</A>`,
    ),
    entries: [{ url: a }],
    named: ['about:config', 'chrome-extension://x/y'],
  },
  'bookmarks without dates and titles': {
    file: html(`<DT><A HREF="${a}"></A>`, `<DT><A HREF="${b}" ADD_DATE="">B</A>`),
    entries: [
      { url: a, title: '' },
      { url: b, title: 'B' },
    ],
  },
  'a tag of more than 255 characters, and a title of more than 2,048': {
    file: html(`<DT><A HREF="${a}" TAGS="${'t'.repeat(300)}">${'x'.repeat(3_000)}</A>`, '<DD>comment'),
    entries: [
      {
        title: `${'x'.repeat(2_047)}…`,
        comment: `…${'x'.repeat(953)}\n\ncomment`,
        tags: [`${'t'.repeat(254)}…`],
      },
    ],
  },
  'a Pocket export with quotes that are not escaped': {
    file: `title,url,time_added,cursor,tags,status\n"Saying "hello" there",${a},1728576752,1,,unread\nOne, two,${b},1728576752,2,x|y,archive\n`,
    entries: [
      { url: a, tags: ['toread'] },
      { url: b, title: 'One,two', tags: ['x', 'y', 'archived'] },
    ],
  },
  'a table whose quote is never closed': {
    file: `url,title\n${a},"Unclosed\n${b},B\n`,
    entries: [
      { url: a, title: '"Unclosed' },
      { url: b, title: 'B' },
    ],
  },
  'a table that an old spreadsheet wrote': {
    file: Buffer.from(`url;title\r\n${a};caf\xe9\r\n`, 'latin1'),
    entries: [{ url: a, title: 'café' }],
  },
  'a Karakeep export with an entry without content': {
    file: JSON.stringify({
      bookmarks: [
        { title: 'A', content: { type: 'link', url: a } },
        { title: 'B', content: null },
      ],
    }),
    entries: [{ url: a }],
    named: [''],
  },
  'a Linkwarden backup with collections in collections and an uploaded file': {
    file: JSON.stringify({
      collections: [
        { id: 1, name: 'Work', links: [] },
        {
          id: 2,
          name: 'Deep',
          parentId: 1,
          links: [
            { id: 5, name: 'A', url: a, tags: [{ name: 't' }], createdAt: '2024-01-02T03:04:05.000Z' },
            { id: 6, name: 'PDF', url: null },
          ],
        },
      ],
      pinnedLinks: [{ id: 5 }],
    }),
    entries: [{ url: a, tags: ['Work/Deep', 't', 'favorite'], created_at: '2024-01-02T03:04:05.000Z' }],
    named: [''],
  },
  'posts of Shaarli with its own dates': {
    file: JSON.stringify([
      {
        id: 1,
        url: a,
        shorturl: 'x',
        title: 'A',
        description: 'D',
        tags: ['t'],
        private: false,
        created: '2015-05-05T12:30:00+03:00',
      },
    ]),
    entries: [{ url: a, comment: 'D', tags: ['t'], created_at: '2015-05-05T09:30:00.000Z' }],
  },
  'the tree of an extension': {
    file: JSON.stringify([
      {
        id: '0',
        title: '',
        children: [
          {
            id: '1',
            parentId: '0',
            title: 'Bookmarks bar',
            children: [{ title: 'Dev', children: [{ url: a, title: 'A', dateAdded: 1_700_000_000_000 }] }],
          },
        ],
      },
    ]),
    entries: [{ url: a, tags: ['Dev'], created_at: '2023-11-14T22:13:20.000Z' }],
  },
  'a live bookmark of an old Firefox': {
    file: JSON.stringify({
      type: 'text/x-moz-place-container',
      root: 'placesRoot',
      children: [{ title: 'News', annos: [{ name: 'livemark/feedURI', value: a }] }],
    }),
    entries: [{ url: a, title: 'News' }],
  },
  'a description and the trash of Vivaldi': {
    file: JSON.stringify({
      roots: {
        bookmark_bar: { children: [{ type: 'url', url: a, name: 'A', meta_info: { Description: 'D' } }] },
        trash: { children: [{ type: 'url', url: b, name: 'B' }] },
      },
    }),
    entries: [{ url: a, comment: 'D' }],
    named: [b],
  },
  'tags with quotes that are not escaped': {
    file: html(
      `<DT><A HREF="${a}" ADD_DATE="1700000000" TAGS="",$",$',',Bash,\`,quotes,read">Quoting</A>`,
      `<DT><A HREF="${b}" TAGS="a "b c" d" FOLDED>A</A>`,
      '<DT><A HREF="https://c.example/" FOLDED LAST_VISIT="" TAGS=""PRIVATE="1">C</A>',
    ),
    entries: [
      { url: a, tags: ['"', '$"', "$'", "'", 'Bash', '`', 'quotes', 'read'] },
      { url: b, tags: ['a "b c" d'] },
      { url: 'https://c.example/', title: 'C', tags: [] },
    ],
  },
  'a list with several addresses in a line': {
    file: `${a}, ${b}\nhttps://c.example/ | https://d.example/\n`,
    entries: [{ url: a }, { url: b }, { url: 'https://c.example/', title: 'https://d.example/' }],
  },
  "wallabag's table": {
    file: `Title;URL;Content;Tags;"MIME Type";Language;"Creation date"\n"A; B";${a};"<p>x</p>";"one, two";text/html;en;"06/12/2021 10:11:12"\nB;${b};;;text/html;en;"26/02/2021 10:11:12"\n`,
    entries: [
      { url: a, title: 'A; B', tags: ['one', 'two'], created_at: '2021-12-06T10:11:12.000Z' },
      { url: b, tags: [], created_at: '2021-02-26T10:11:12.000Z' },
    ],
  },
  'a file that Pocket2Linkding wrote': {
    file: html(
      `<DT><A HREF="${a}" ADD_DATE="1728576752" LAST_MODIFIED="1728576752" PRIVATE="1" TOREAD="0" TAGS="x,linkding:bookmarks.archived">A <T> & "b"</A>`,
      `<DT><A HREF="${b}" ADD_DATE="1728576752" LAST_MODIFIED="1728576752" PRIVATE="1" TOREAD="1" TAGS="">B</A>`,
    ),
    entries: [
      { url: a, title: 'A <T> & "b"', tags: ['x', 'archived'], created_at: '2024-10-10T16:12:32.000Z' },
      { url: b, title: 'B', tags: ['toread'] },
    ],
  },
  'a damaged byte in UTF-8': {
    file: Buffer.concat([
      Buffer.from(html(`<DT><A HREF="${b}">üöä</A>`, `<DT><A HREF="${a}">A`)),
      Buffer.from([0xff]),
    ]),
    entries: [{ url: b, title: 'üöä' }, { url: a }],
  },
};

test.each(Object.keys(REPORTS))('%s shows no silent loss', (name) => {
  const { file, entries, named = [] } = REPORTS[name]!;
  const parsed = read(file);
  expect(parsed.refusals).toEqual([]);
  expect(parsed.entries).toMatchObject(entries);
  expect(parsed.leftOut.map((entry) => entry.url)).toEqual(named);
});

test.each([
  ['mozLz40\0', 'a compressed backup of Firefox'],
  ['PK\u0003\u0004', 'a ZIP archive'],
  ['SQLite format 3\0', 'a database'],
  ['bplist00', 'a binary property list'],
  ['%PDF-1.7', 'a PDF'],
])('a file that begins with %j is named as what it is, with what to do', (start, name) => {
  const bytes = Buffer.concat([Buffer.from(start, 'latin1'), Buffer.from([0xf1, 0xff, 0, 1])]);
  expect(() => read(bytes)).toThrow(new RegExp(`^the file is ${name}.*(import|export)`));
});

test.each([
  '{"other":[{"url":"https://a.example/"}]}',
  '[{"text":"no address"}]',
  '[1,2]',
  '"https://a.example/"',
])('the JSON %s is refused with the list of what can be read', (file) => {
  expect(() => read(file)).toThrow(/expected .*Omnivore/);
});

test.each([
  ['[InternetShortcut]\r\nURL=https://a.example/\r\n', 'the file format is unknown'],
  [
    '<?xml version="1.0"?><xbel><bookmark href="https://a.example/"/></xbel>',
    'the file contains unknown XML',
  ],
  ['[{"url":"https://a.example/"', 'the file is not complete JSON'],
  ['{', 'the file is not complete JSON'],
])('the file %j is refused with the right reason', (file, reason) => {
  expect(() => read(file)).toThrow(reason);
});

test('fields that are not read are named', () => {
  const file = JSON.stringify([{ url: a, title: 'A', rating: 5, id: 1, empty: '' }]);
  expect(read(file).unknownFields).toEqual(['rating']);
});
