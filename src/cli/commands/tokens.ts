import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ApiToken, OpenSession } from '../../domain/resources.ts';
import { integerFrom } from '../arguments.ts';
import { toLine } from '../display-text.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

const NEVER = 'never';

/** Parses a number of days, or `never`. Does not return null for `never`, because commander ignores null. */
function parseDays(text: string): number | typeof NEVER {
  if (text === NEVER) return NEVER;
  try {
    return integerFrom(1, 365)(text);
  } catch {
    throw new InvalidArgumentError(`expected an integer from 1 to 365, or ${NEVER}`);
  }
}

/**
 * Adds the commands `tokens` and `sessions`. They need a login through the browser or with a code, not an API token.
 */
export function addTokenCommands(program: Command, run: Run): void {
  const tokens = program.command('tokens').description('list, create and revoke API tokens');
  tokens.command('list', { isDefault: true }).description('list your API tokens').action(run(listTokens));
  tokens
    .command('create')
    .description('create an API token; it is shown only once')
    .argument('<name>', 'what the token is for')
    .addOption(
      new Option('--scope <scope>', 'what the token allows').choices(['read', 'write']).default('read'),
    )
    .addOption(
      new Option('--days <days>', `days until it expires: 1 to 365, or ${NEVER}`)
        .argParser(parseDays)
        .default(90),
    )
    .action(run(createToken));
  tokens
    .command('revoke')
    .description('revoke an API token')
    .argument('<id>', 'an id from `tokens list`', integerFrom(1))
    .action(run(revokeToken));

  const sessions = program.command('sessions').description('list and end your sessions');
  sessions.command('list', { isDefault: true }).description('list your sessions').action(run(listSessions));
  sessions
    .command('revoke')
    .description('end a session')
    .argument('<id>', 'an id from `sessions list`', integerFrom(1))
    .action(run(revokeSession));
  sessions
    .command('revoke-others')
    .description('end all sessions except this one')
    .action(run(revokeOtherSessions));
}

/** Returns the date of a time, or `byDefault` if the time is null. */
const formatDay = (time: string | null, byDefault: string): string => time?.slice(0, 10) ?? byDefault;

const COLUMNS = [
  { name: 'ID' },
  { name: 'ENDS WITH' },
  { name: 'CREATED' },
  { name: 'USED' },
  { name: 'EXPIRES' },
];

const cellsOf = ({
  id,
  last_four,
  created_at,
  last_used_at,
  expires_at,
}: ApiToken | OpenSession): string[] => [
  String(id),
  toLine(last_four),
  toLine(formatDay(created_at, '')),
  toLine(formatDay(last_used_at, 'not yet')),
  toLine(formatDay(expires_at, NEVER)),
];

async function listTokens(session: Session): Promise<void> {
  const { terminal, signal } = session;
  const response = await (await openOwnClient(session)).listTokens({ signal });
  const table = {
    columns: [...COLUMNS, { name: 'SCOPE' }, { name: 'NAME', isFlexible: true }],
    rows: response.tokens.map((token) => [...cellsOf(token), toLine(token.scope), toLine(token.name)]),
  };
  await terminal.printTable(response, table, 'no API tokens yet');
}

async function createToken(
  session: Session,
  name: string,
  { scope, days }: { scope: 'read' | 'write'; days: number | typeof NEVER },
): Promise<void> {
  const client = await openOwnClient(session);
  const created = await client.createToken(
    { name, scope, expires_in_days: days === NEVER ? null : days },
    { signal: session.signal },
  );
  if (!session.terminal.isJson) session.terminal.note('The token is shown only once:');
  await session.terminal.print(created, () => toLine(created.token));
}

async function revokeToken(session: Session, id: number): Promise<void> {
  const revoked = await (await openOwnClient(session)).revokeToken(id, { signal: session.signal });
  await session.terminal.print(revoked, () => `Revoked token ${id}`);
}

async function listSessions(session: Session): Promise<void> {
  const { terminal, signal } = session;
  const response = await (await openOwnClient(session)).listSessions({ signal });
  const table = {
    columns: [...COLUMNS, { name: 'CLIENT', isFlexible: true }],
    rows: response.sessions.map((each) => {
      const knownNames = [each.app_name, each.client].filter((name) => name !== null);
      const app = toLine(knownNames.join(', ') || 'unknown');
      return [...cellsOf(each), each.is_current ? `${app} (this one)` : app];
    }),
  };
  await terminal.printTable(response, table, 'no sessions');
}

async function revokeSession(session: Session, id: number): Promise<void> {
  const revoked = await (await openOwnClient(session)).revokeSession(id, { signal: session.signal });
  await session.terminal.print(revoked, () => `Ended session ${id}`);
}

async function revokeOtherSessions(session: Session): Promise<void> {
  const ended = await (await openOwnClient(session)).revokeOtherSessions({ signal: session.signal });
  await session.terminal.print(ended, () => `Sessions ended: ${ended.revoked}`);
}
