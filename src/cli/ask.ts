import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { writeOutControls } from './display-text.ts';
import { Interrupted } from './faults.ts';
import type { Session } from './session.ts';

/**
 * Reads a line from standard input. Returns undefined at the end of the input. On a terminal, prints the question
 * first, and does not show a secret while the user types it. Throws `Interrupted` on Ctrl-C.
 */
export async function askLine(
  { terminal, signal }: Session,
  question: string,
  { secret = false } = {},
): Promise<string | undefined> {
  const { stdin, stderr } = terminal.streams;
  const isTerminal = stdin.isTTY === true;
  if (isTerminal) stderr.write(writeOutControls(question));
  const discardOutput = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({
    input: stdin,
    output: secret ? discardOutput : stderr,
    terminal: isTerminal,
  });
  let isInterrupted = false;
  const stop = () => {
    isInterrupted = true;
    lines.close();
  };
  signal.addEventListener('abort', stop, { once: true });
  lines.once('SIGINT', stop);
  try {
    // Only the first line is needed, so the loop ends after it.
    for await (const line of lines) return line.trim();
    if (isInterrupted) throw new Interrupted();
    return undefined;
  } finally {
    signal.removeEventListener('abort', stop);
    lines.close();
    if (isTerminal && secret) stderr.write('\n');
  }
}
