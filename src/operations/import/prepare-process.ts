import { ApiError } from '../../domain/errors.ts';
import { decodeJson } from '../../domain/json.ts';
import { parseImport } from './body.ts';
import { Preparation } from './preparation.ts';
import type { FromChild, ToChild } from './preparers.ts';

/**
 * The process that prepares long imports for another one: it gathers the chunks of a body, parses and checks them, and asks
 * its parent for everything that needs the database. It ends with its parent, and when its heap is full.
 */

type Answer = ToChild & { type: 'result' };

const send = (message: FromChild): void => void process.send!(message);

const chunks: Uint8Array[] = [];
let calls = 0;
const waiting = new Map<number, PromiseWithResolvers<unknown>>();

/** Has the parent do something. A parent that fails ends this process, so the promise never rejects. */
function call(name: (FromChild & { type: 'call' })['name'], ...args: unknown[]): Promise<never> {
  const answer = Promise.withResolvers<unknown>();
  calls += 1;
  waiting.set(calls, answer);
  send({ type: 'call', id: calls, name, args });
  return answer.promise as Promise<never>;
}

function settle({ id, value }: Answer): void {
  waiting.get(id)?.resolve(value);
  waiting.delete(id);
}

async function prepare({ looksAhead, stages }: ToChild & { type: 'prepare' }): Promise<void> {
  try {
    // Nothing holds the bytes any more while their text is parsed.
    const { replace, entries } = parseImport(decodeJson(Buffer.concat(chunks.splice(0))));
    const preparation = new Preparation({
      replace,
      findKnown: looksAhead ? (urlKeys) => call('findKnown', urlKeys) : undefined,
      ...(stages && {
        stage: {
          putPiece: (position, piece) => call('putPiece', position, piece),
          putErrors: (position, errors) => call('putErrors', position, errors),
        },
      }),
    });
    await preparation.add(entries);
    send({ type: 'prepared', prepared: await preparation.end() });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    send({ type: 'refused', code: error.code, message: error.message });
  }
}

process.on('message', (message: ToChild) => {
  if (message.type === 'chunk') chunks.push(message.bytes);
  else if (message.type === 'result') settle(message);
  else void prepare(message);
});
process.once('disconnect', () => process.exit());
// A signal to the group of processes is for the parent, which ends this process when it is done.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
