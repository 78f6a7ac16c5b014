import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ApiToken, OpenSession } from '../../domain/resources.ts';
import { integerFrom } from '../arguments.ts';
import { toLine } from '../display-text.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

const NEVER = 'never';

/** A number of days, or `never`: commander takes null for no value. */
function parseDays(text: string): number | typeof NEVER {
  if (text === NEVER) return NEVER;
  try {
    return integerFrom(1, 365)(text);
  } catch {
    throw new InvalidArgumentError(`expected an integer from 1 to 365, or ${NEVER}`);
  }
}

/** Adds `tokens` and `sessions` with their subcommands. They need a login by a session: by an invite, or in a browser. */
export function addTokenCommands(program: Command, run: Run): void {
  const tokens = program.command('tokens').description('list API tokens; create and revoke them');
  tokens.command('list', { isDefault: true }).description('list your API tokens').action(run(listTokens));
  tokens
    .command('create')
    .description('create an API token; it is shown once')
    .argument('<name>', 'what it is for')
    .addOption(new Option('--scope <scope>', 'what it allows').choices(['read', 'write']).default('read'))
    .addOption(
      new Option('--days <days>', `how long it is valid, 1 to 365, or ${NEVER}`)
        .argParser(parseDays)
        .default(90),
    )
    .action(run(createToken));
  tokens
    .command('revoke')
    .description('revoke an API token')
    .argument('<id>', 'as the list shows it', integerFrom(1))
    .action(run(revokeToken));

  const sessions = program.command('sessions').description('list your sessions; end them');
  sessions.command('list', { isDefault: true }).description('list your sessions').action(run(listSessions));
  sessions
    .command('revoke')
    .description('end a session')
    .argument('<id>', 'as the list shows it', integerFrom(1))
    .action(run(revokeSession));
  sessions
    .command('revoke-others')
    .description('end all sessions but this one')
    .action(run(revokeOtherSessions));
}

const day = (time: string | null, byDefault: string): string => time?.slice(0, 10) ?? byDefault;

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
  toLine(day(created_at, '')),
  toLine(day(last_used_at, 'not yet')),
  toLine(day(expires_at, NEVER)),
];

async function listTokens(session: Session): Promise<void> {
  const { terminal, signal } = session;
  const list = await (await openOwnClient(session)).listTokens({ signal });
  if (terminal.isJson) return terminal.print(list, () => '');
  if (list.tokens.length === 0) return terminal.note('no API tokens yet');
  await terminal.table({
    columns: [...COLUMNS, { name: 'SCOPE' }, { name: 'NAME', isFlexible: true }],
    rows: list.tokens.map((token) => [...cellsOf(token), toLine(token.scope), toLine(token.name)]),
  });
}

async function createToken(
  session: Session,
  name: string,
  { scope, days }: { scope: 'read' | 'write'; days: number | typeof NEVER },
): Promise<void> {
  const client = await openOwnClient(session);
  const made = await client.createToken(
    { name, scope, expires_in_days: days === NEVER ? null : days },
    { signal: session.signal },
  );
  if (!session.terminal.isJson) session.terminal.note('It is shown this once:');
  await session.terminal.print(made, () => toLine(made.token));
}

async function revokeToken(session: Session, id: number): Promise<void> {
  const revoked = await (await openOwnClient(session)).revokeToken(id, { signal: session.signal });
  await session.terminal.print(revoked, () => `Revoked ${id}`);
}

async function listSessions(session: Session): Promise<void> {
  const { terminal, signal } = session;
  const list = await (await openOwnClient(session)).listSessions({ signal });
  if (terminal.isJson) return terminal.print(list, () => '');
  await terminal.table({
    columns: [...COLUMNS, { name: 'CLIENT', isFlexible: true }],
    rows: list.sessions.map((each) => {
      const known = [each.app_name, each.client].filter((name) => name !== null);
      const app = toLine(known.join(', ') || 'unknown');
      return [...cellsOf(each), each.is_current ? `${app} (this one)` : app];
    }),
  });
}

async function revokeSession(session: Session, id: number): Promise<void> {
  const revoked = await (await openOwnClient(session)).revokeSession(id, { signal: session.signal });
  await session.terminal.print(revoked, () => `Ended ${id}`);
}

async function revokeOtherSessions(session: Session): Promise<void> {
  const ended = await (await openOwnClient(session)).revokeOtherSessions({ signal: session.signal });
  await session.terminal.print(ended, () => `Ended ${ended.revoked}`);
}
