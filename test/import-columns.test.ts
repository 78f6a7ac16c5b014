import { expect, test } from 'vitest';
import { prepareEntries } from '../src/imports/batches.ts';
import { useService } from './support/service.ts';

/** Tests how the entries of an import reach Postgres. */

const service = useService();

const shapes = (texts: readonly string[]) =>
  texts.map((text, n) => ({ url: `https://example.org/${n}`, title: text, comment: text }));

test.each([
  { what: 'an import of one entry without texts', texts: [''] },
  { what: 'an import of entries without texts', texts: ['', '', ''] },
  {
    what: 'an import of texts with quotes, backslashes and control characters',
    texts: ['a\x1fb', '"', '\\', '{},\n\t\u2028'],
  },
])('$what stores the entries as sent', async ({ texts }) => {
  const user = await service.user();
  const bookmarks = shapes(texts.map((text) => text.trim()));
  const response = await user.post('/import', { bookmarks });
  expect(response.body).toEqual({ imported: texts.length, skipped: 0, errors: [] });
  const exported = await user.post('/export');
  expect(exported.body.bookmarks).toMatchObject(bookmarks);
});

test('a replace with many entries that exist already replaces the old bookmarks', async () => {
  const user = await service.user();
  const known = shapes(Array.from({ length: 300 }, (_, n) => `text ${n}`));
  await user.post('/import', { bookmarks: known });
  const changed = known.map(({ url }) => ({ url, title: 'changed' }));
  const response = await user.post('/import', { mode: 'replace', bookmarks: changed });
  expect(response.body).toEqual({ imported: 300, skipped: 0, errors: [] });
  expect((await user.post('/export')).body.bookmarks).toMatchObject(changed);
});

test('the check of many entries lets other work run in between', async () => {
  let turns = 0;
  let isDone = false;
  const countTurns = () => {
    turns += 1;
    if (!isDone) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  const entries = shapes(Array.from({ length: 50_000 }, (_, n) => `text ${n}`));
  await prepareEntries({ replace: false, entries });
  isDone = true;
  expect(turns).toBeGreaterThan(5);
});

test('among many existing entries the new one is imported, and a repeat imports nothing', async () => {
  const user = await service.user();
  const known = shapes(Array.from({ length: 300 }, (_, n) => `text ${n}`));
  expect((await user.post('/import', { bookmarks: known })).body).toMatchObject({ imported: 300 });
  // One url now has two bookmarks. The next import still counts the entry with this url once, as skipped.
  await user.post('/bookmarks/add', { url: known[7]!.url });
  const more = [...known, { url: 'https://example.org/new', title: '', comment: '' }];
  expect((await user.post('/import', { bookmarks: more })).body).toEqual({
    imported: 1,
    skipped: 300,
    errors: [],
  });
  expect((await user.post('/import', { bookmarks: more })).body).toEqual({
    imported: 0,
    skipped: 301,
    errors: [],
  });
  const twice = await user.post('/import', { bookmarks: [...more, ...more, { url: 'no url' }] });
  expect(twice.body).toMatchObject({ imported: 0, skipped: 602, errors: [{ index: 602 }] });
});
