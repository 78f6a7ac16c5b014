import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Command, InvalidArgumentError } from 'commander';
import { BASE_PATH } from '../../src/http/mount.ts';
import { isLoopback } from '../../src/sign-in/variables.ts';
import { openDatabase } from '../../src/store/driver/open.ts';
import { runDay } from './day.ts';
import { formatVerdict, judge } from './judge.ts';
import { createUsers } from './users.ts';

/**
 * `npm run load -- --url https://staging.example.org --users 1000 --minutes 10` runs for 10 minutes. It sends a service
 * the requests that 1,000 clients send on a normal day, and then prints a verdict.
 */

/** The requests per second that each client sends in addition to its polls (docs/scaling.md). */
const REQUESTS_PER_CLIENT = 0.0062;

interface Options {
  url: string;
  users: number;
  minutes: number;
  rate?: number;
  tokens?: string;
  yes?: true;
}

const parseNumber = (text: string): number => {
  const number = Number(text);
  if (number > 0 && number <= 1_000_000) return number;
  throw new InvalidArgumentError('expected a number from above 0 to 1000000');
};

const parseUrl = (text: string): string => {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text;
  throw new InvalidArgumentError('expected an http or https url');
};

/** Asks the operator for confirmation, unless `yes` is set or the host is this machine. */
async function mayLoad({ url, users, minutes, yes }: Options): Promise<boolean> {
  const { hostname } = new URL(url);
  if (yes || isLoopback(hostname)) return true;
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`Load ${hostname} as ${users} users for ${minutes} minutes? [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** Reads the tokens from a file, one per line. Without a file, creates users in the database of `DATABASE_URL`. */
async function openTokens({ tokens, users }: Options, stack: AsyncDisposableStack): Promise<string[]> {
  if (tokens !== undefined) {
    const lines = readFileSync(tokens, 'utf8').split('\n');
    return lines
      .map((line) => line.trim())
      .filter(Boolean)
      .slice(0, users);
  }
  const url = process.env.DATABASE_URL;
  if (url === undefined) return [];
  const database = await openDatabase({ url, max: 2, application: 'load' });
  stack.defer(() => database.close());
  return stack.use(await createUsers(database, users)).tokens;
}

async function main(options: Options): Promise<void> {
  if (!(await mayLoad(options))) return program.error('not loaded: answer y, or give --yes', { exitCode: 2 });
  await using stack = new AsyncDisposableStack();
  const tokens = await openTokens(options, stack);
  if (tokens.length < options.users)
    return program.error(
      `${tokens.length} tokens for ${options.users} users: --tokens FILE, or DATABASE_URL`,
      {
        exitCode: 2,
      },
    );
  const ending = new AbortController();
  process.once('SIGINT', () => ending.abort());
  const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(options.minutes * 60_000)]);
  const perSecond = options.rate ?? options.users * REQUESTS_PER_CLIENT;
  const verdict = judge(
    await runDay({ url: `${options.url.replace(/\/+$/, '')}${BASE_PATH}`, tokens, perSecond, signal }),
  );
  process.stdout.write(formatVerdict(verdict));
  process.exitCode = verdict.isKept ? 0 : 1;
}

const program = new Command('load')
  .description(
    'load a service as a day does, and judge it by what it promises; exit code 1: a promise was broken',
  )
  .requiredOption('--url <url>', 'the service', parseUrl)
  .option('--users <count>', 'clients that wait for changes', parseNumber, 1_000)
  .option('--minutes <minutes>', 'how long', parseNumber, 10)
  .option('--rate <perSecond>', 'other requests a second; default 6.2 for 1,000 users', parseNumber)
  .option(
    '--tokens <file>',
    'an API token of scope write a line; else users are created by DATABASE_URL, and deleted',
  )
  .option('--yes', 'do not ask before a host that is not this machine is loaded')
  .action(main);
await program.parseAsync();
