import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { runImport } from '../../src/imports/run.ts';
import {
  beginImport,
  type ImportKey,
  jobIdOf,
  queueImport,
  readImport,
  stageChunk,
} from '../../src/store/staged-imports.ts';
import { HOSTILE_IMPORTS } from '../support/hostile-imports.ts';
import { startService, type TestService } from '../support/service.ts';
import { longestTurn } from '../support/turns.ts';

// Imports do not delay each other, because a worker lets other work run after handling at most about 1 MiB. A separate
// process parses long bodies, so the worker's thread only handles the chunks of a body, and the rows and errors that the
// parser returns. `hostile-imports.test.ts` sends all hostile bodies.

/**
 * The CPU time, in milliseconds, that the thread may use without a break. It is long enough for a slow machine. Parsing
 * the body with the distinct keys in the thread would take far longer.
 */
const LONGEST_TURN_MS = 150;

const MIB = 1_048_576;

const fillText = (entryOf: (n: number) => string, entries: number): string =>
  `{"bookmarks":[${Array.from({ length: entries }, (_, n) => entryOf(n)).join(',')}]}`;

/** The valid bodies that cause the most work for a worker. Each has several batches. */
const LARGE: Record<string, () => string> = {
  '25,000 ordinary entries': () =>
    fillText(
      (n) =>
        `{"url":"http://e/${n}","title":"${'title '.repeat(30)}","comment":"${'comment '.repeat(50)}","tags":["a${n % 5_000}","b${n % 99}","c"]}`,
      25_000,
    ),
  'entries of 100 tags': () =>
    fillText(
      (n) =>
        `{"url":"http://e/${n}","tags":[${Array.from({ length: 100 }, (_, m) => `"t${(n * 7 + m * 31) % 10_000}"`).join(',')}]}`,
      10_000,
    ),
  'the longest texts, normalized': () =>
    fillText(
      (n) => `{"url":"http://e/${n}","title":"${'Ä'.repeat(2_048)}","comment":"${'İ'.repeat(10_000)}"}`,
      700,
    ),
};

/** The expected result of each of these imports. */
const LARGE_RESULTS: Record<string, object> = {
  '25,000 ordinary entries': { imported: 25_000, skipped: 0 },
  'entries of 100 tags': { imported: 10_000, skipped: 0 },
  'the longest texts, normalized': { imported: 700, skipped: 0 },
};

const bodies: [string, () => string, object][] = [
  ...Object.entries(LARGE).map(([name, body]): [string, () => string, object] => [
    name,
    body,
    LARGE_RESULTS[name]!,
  ]),
  ...['entries of 40,000 distinct keys', '100,000 errors with long urls'].map(
    (name): [string, () => string, object] => {
      const { body, response } = HOSTILE_IMPORTS[name]!;
      // The expected errors are left out, because the stored result does not contain errors.
      return [
        name,
        body,
        Object.fromEntries(Object.entries(response).filter(([field]) => field !== 'errors')),
      ];
    },
  ),
];

/** Stages a body and queues the import, as the replica that receives a body does. */
async function queueBody(service: TestService, text: string): Promise<ImportKey> {
  const { database } = service.context;
  const user = await service.user({ premium: true });
  const rows = await database.sql<{ hash: Buffer }[]>`
    select token_hash as hash from tokens where user_id = ${user.id}`;
  const owner = { userId: user.id, hash: rows[0]!.hash };
  const staged = { userId: user.id, id: randomUUID() };
  await beginImport(database, owner, staged.id, 64 * MIB, 128 * MIB);
  const bytes = Buffer.from(text);
  for (let position = 0; position * 65_536 < bytes.length; position += 1)
    await stageChunk(database, staged, position, bytes.subarray(position * 65_536, (position + 1) * 65_536));
  await queueImport(database, owner, staged.id, {});
  return staged;
}

// The CPU time between two yields also rises with other load on the machine, so one good run of three is enough.
test.each(bodies)('%s never block the thread for long', { retry: 2 }, async (name, body, result) => {
  await using service = await startService({ importInlineBytes: 0 });
  await service.context.coordination.imports.stopWorker(0);
  const staged = await queueBody(service, body());
  const stop = new AbortController().signal;
  const turn = await longestTurn(() => runImport(service.context, jobIdOf(staged), stop));
  const ended = await readImport(service.context.database, staged);
  expect(ended?.state).toBe('done');
  const received = JSON.parse(ended!.result!);
  // On a slow machine, parsing a hostile body may take too long. Parsing an ordinary body never does.
  const isTooComplex = !(name in LARGE) && received.error === 'body: is too complex to be parsed';
  if (!isTooComplex) expect(received).toMatchObject(result);
  expect(turn).toBeLessThan(LONGEST_TURN_MS);
});
