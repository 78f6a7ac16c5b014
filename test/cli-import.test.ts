import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Bookmark } from '../src/domain/resources.ts';
import { foldText } from '../src/domain/text.ts';
import { readBookmarkFile } from '../src/formats/read-file.ts';
import { runCommand } from './support/cli.ts';
import { useService } from './support/service.ts';

// Imports the files of other programs by the command line. `import-samples.test.ts` checks what is read from them.

const service = useService();
const SAMPLES = join(import.meta.dirname, 'samples');

async function openShell() {
  const user = await service.user();
  const env = { BOOKMARKS_URL: service.origin, BOOKMARKS_TOKEN: user.token, XDG_CONFIG_HOME: '/nonexistent' };
  const run = (args: string[], input?: string | Buffer) => runCommand(args, { env, ...(input && { input }) });
  const all = async (): Promise<Bookmark[]> => (await user.post('/export')).body.bookmarks;
  return { run, all };
}

test.each(readdirSync(SAMPLES))('imports all that is read from %s, and reports the rest', async (name) => {
  const { run, all } = await openShell();
  const file = join(SAMPLES, name);
  const parsed = readBookmarkFile(readFileSync(file), { foldersAsTags: true });
  const { code, out } = await run(['import', file, '--json']);
  const report = JSON.parse(out);
  // The service refuses one entry of `bookmark-service.json`, and skips another one because of its url.
  const isOwn = name === 'bookmark-service.json';
  expect(code).toBe(isOwn ? 1 : 0);
  expect(report).toMatchObject({
    format: parsed.format,
    combined: parsed.combined,
    left_out: parsed.leftOut,
    changes: parsed.changes,
    unknown_fields: parsed.unknownFields,
  });
  const accepted = isOwn ? parsed.entries.slice(0, 1) : parsed.entries;
  expect(report.imported).toBe(accepted.length);
  const nameOf = (tag: string | { name: string }) => foldText(typeof tag === 'string' ? tag : tag.name);
  const bookmarks = (await all()).map(({ url, title, comment, tags, created_at }) => ({
    ...{ url, title, comment, tags: tags.map(nameOf).sort(), created_at },
  }));
  expect(bookmarks).toMatchObject(
    accepted.map(({ url, title, comment, tags = [], created_at }) => ({
      ...{ url, title, comment, tags: tags.map(nameOf).sort(), ...(created_at && { created_at }) },
    })),
  );
});

test('names what it left out, what it changed, and which fields it did not read', async () => {
  const { run } = await openShell();
  const rows = ['url,title,created,rating', 'javascript:1,A script,,', 'https://example.org/,A,soon,5'];
  const { code, out } = await run(['import', '-'], rows.join('\n'));
  expect(code).toBe(0);
  expect(out).toContain('Left out: 1\n  A script: javascript:1 (not a web page)');
  const untitled = await run(['import', '-'], '[{"href":"about:x","toread":"no"},null,{"href":""}]');
  expect(untitled.out).toContain('  about:x (not a web page)\n');
  expect(untitled.out).toContain('  an entry (it has no url)\n');
  expect(out).toContain('Changed: 1\n  https://example.org/: an unreadable date was dropped: soon');
  expect(out).toContain('Not read: the fields rating');
  const western = await run(
    ['import', '-', '--dry-run'],
    Buffer.from('url,title\nhttps://a/,caf\xe9', 'latin1'),
  );
  expect(western.out).toContain('Read as windows-1252, because the file is not UTF-8');
});

test('an exported sheet begins with a byte order mark, and its import restores all bookmarks', async () => {
  const one = await openShell();
  await one.run(['import', join(SAMPLES, 'raindrop.csv')]);
  const { out } = await one.run(['export', '--format', 'csv']);
  expect(out.startsWith('\ufeffurl,title,')).toBe(true);
  const other = await openShell();
  await other.run(['import', '-'], out);
  const withoutIds = (bookmarks: Bookmark[]) =>
    bookmarks.map(({ url, title, comment, tags, created_at, updated_at }) => ({
      ...{ url, title, comment, tags: tags.map(({ name }) => name), created_at, updated_at },
    }));
  expect(withoutIds(await other.all())).toEqual(withoutIds(await one.all()));
  const again = await other.run(['export', '--format', 'csv']);
  expect(again.out).toBe(out);
});
