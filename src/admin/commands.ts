import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { importChannel, notifyPolls } from '../coordination/channels.ts';
import { BOUNDS } from '../domain/bounds.ts';
import { foldText, isStorable } from '../domain/text.ts';
import { createSecret, formatToken, type Scope } from '../domain/tokens.ts';
import {
  beginEpoch,
  createApiToken,
  createUser,
  deleteUser,
  findUser,
  findUserId,
  listTokens,
  listUsers,
  resumeUser,
  revokeAllTokens,
  revokeTokenById,
  setPremium,
  suspendUser,
} from '../store/admin.ts';
import { type AuditedCommand, listAudit } from '../store/audit.ts';
import { openUserExport } from '../store/user-export.ts';
import { issueInvite } from './invites.ts';
import { type AdminContext, CommandError, type CommandHost, commandRunner, type RunCommand } from './run.ts';

/** The admin commands. Each prints one JSON object, or an error on standard error. */

function parseEmail(text: string): string {
  const email = text.trim();
  if (!z.email({ pattern: z.regexes.unicodeEmail }).max(254).safeParse(email).success)
    throw new InvalidArgumentError('expected an e-mail address');
  return email;
}

/** Matches a whole number of at most five digits. */
const SHORT_NUMBER = /^\d{1,5}$/;

/** Matches the id of a token: the user's id and the token's number, for example `42-3`. */
const TOKEN_ID = /^(?<userId>\d{1,16})-(?<tokenId>\d{1,16})$/;

const parseDays =
  (max: number) =>
  (text: string): number => {
    const days = Number(text);
    if (SHORT_NUMBER.test(text) && days >= 1 && days <= max) return days;
    throw new InvalidArgumentError(`expected a whole number of days from 1 to ${max}`);
  };

function parseId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected a user id, a whole number');
}

function parseLimit(text: string): number {
  const limit = Number(text);
  if (SHORT_NUMBER.test(text) && limit >= 1 && limit <= 10_000) return limit;
  throw new InvalidArgumentError('expected a whole number from 1 to 10000');
}

function parseName(text: string): string {
  const name = text.trim();
  if ([...name].length <= BOUNDS.tagName && isStorable(name)) return name;
  throw new InvalidArgumentError(`expected at most ${BOUNDS.tagName} characters`);
}

const email = () =>
  new Option('--email <email>', "the user's e-mail address").argParser(parseEmail).makeOptionMandatory();
const premium = () =>
  new Option('--premium <flag>', 'whether the account has no bookmark limit').choices(['true', 'false']);

/**
 * Lets a command run with any version of the schema. Commands have this option if they revoke or delete, show what to
 * revoke, or begin a new epoch.
 */
const ANY_SCHEMA = { onAnySchema: true };

const noUser = () => new CommandError('no user has this e-mail address');

async function requireUserId({ database }: AdminContext, address: string): Promise<number> {
  const id = await findUserId(database, foldText(address));
  if (id === undefined) throw noUser();
  return id;
}

function addUserCommands(user: Command, run: RunCommand): void {
  user
    .command('create')
    .description('create a user')
    .addOption(email())
    .option('--premium', 'without a bookmark limit', false)
    .action((options) =>
      run(async ({ database }) => {
        const user = await createUser(database, options.email, foldText(options.email), options.premium);
        if (user === undefined) throw new CommandError('a user with this e-mail address already exists');
        return user;
      }),
    );
  user
    .command('show')
    .description('show a user, by e-mail address or by the id in the logs')
    .option('--email <email>', "the user's e-mail address", parseEmail)
    .option('--id <id>', "the user's id", parseId)
    .action((options: { email?: string; id?: number }) =>
      run(async ({ database }) => {
        const { email: address, id } = options;
        if ((address === undefined) === (id === undefined))
          throw new CommandError('give either --email or --id');
        const found = await findUser(database, { id, emailKey: address && foldText(address) });
        if (found === undefined)
          throw address === undefined ? new CommandError('no user has this id') : noUser();
        return found;
      }, ANY_SCHEMA),
    );
  user
    .command('list')
    .description('list users by id')
    .option('--after <id>', 'only users with a higher id', parseId, 0)
    .addOption(
      new Option('--limit <limit>', 'the maximum number of users').argParser(parseLimit).default(100),
    )
    .action(({ after, limit }: { after: number; limit: number }) =>
      run(async ({ database }) => {
        const users = await listUsers(database, after, limit + 1);
        return { users: users.slice(0, limit), has_more: users.length > limit };
      }, ANY_SCHEMA),
    );
  user
    .command('set')
    .description("set a user's tier")
    .addOption(email())
    .addOption(premium().makeOptionMandatory())
    .action((options) =>
      run(async ({ database }) => {
        const changed = await setPremium(database, foldText(options.email), options.premium === 'true');
        if (changed === undefined) throw noUser();
        return changed;
      }),
    );
  user
    .command('suspend')
    .description('refuse all requests and sign-ins of a user; deletes nothing')
    .addOption(email())
    .action((options) =>
      run(async (context) => {
        const suspended = await suspendUser(context.database, foldText(options.email));
        if (suspended === undefined) throw noUser();
        const { import_ids: importIds, ...shown } = suspended;
        notifyPolls(context, shown.id);
        for (const id of importIds) context.notify(importChannel(id));
        return { ...shown, cancelled_imports: importIds.length };
      }),
    );
  user
    .command('resume')
    .description('end the suspension of a user')
    .addOption(email())
    .action((options) =>
      run(async ({ database }) => {
        const resumed = await resumeUser(database, foldText(options.email));
        if (resumed === undefined) throw noUser();
        return resumed;
      }),
    );
  user
    .command('export')
    .description("print a user's data except the trash and passkeys, for a data-protection request")
    .addOption(email())
    .action((options) =>
      run(async ({ database }) => {
        const chunks = await openUserExport(database, foldText(options.email));
        if (chunks === undefined) throw noUser();
        return chunks;
      }),
    );
  user
    .command('delete')
    .description('delete a user and all their data')
    .addOption(email())
    .action((options) =>
      run(async (context) => {
        const id = await requireUserId(context, options.email);
        if (!(await deleteUser(context.database, foldText(options.email)))) throw noUser();
        notifyPolls(context, id);
        return { deleted: true };
      }, ANY_SCHEMA),
    );
}

function addInviteCommands(invite: Command, run: RunCommand): void {
  invite
    .command('create')
    .description('issue an invite code; it works once and creates the user if needed')
    .addOption(email())
    .addOption(
      new Option('--days <days>', 'days until it expires, up to 30').argParser(parseDays(30)).default(7),
    )
    .action((options) => run(({ database }) => issueInvite(database, options.email, options.days)));
}

function addTokenCommands(token: Command, run: RunCommand): void {
  token
    .command('create')
    .description('issue an API token; it is shown once')
    .addOption(email())
    .addOption(
      new Option('--scope <scope>', 'what the token allows').choices(['read', 'write']).makeOptionMandatory(),
    )
    .addOption(new Option('--name <name>', 'what the token is for').argParser(parseName).default(''))
    .addOption(
      new Option('--days <days>', 'days until it expires; default: never').argParser(parseDays(36_500)),
    )
    .action((options: { email: string; scope: Scope; name: string; days?: number }) =>
      run(async (context) => {
        const userId = await requireUserId(context, options.email);
        const secret = createSecret();
        const { scope, name, days = null } = options;
        const settings = { scope, name, nameKey: foldText(name), days };
        const record = await createApiToken(context.database, userId, secret, settings);
        return { token: formatToken('api', userId, secret.secret), ...record };
      }),
    );
  token
    .command('list')
    .description("list a user's valid tokens")
    .addOption(email())
    .action((options) =>
      run(
        async (context) => ({
          tokens: await listTokens(context.database, await requireUserId(context, options.email)),
        }),
        ANY_SCHEMA,
      ),
    );
  token
    .command('revoke')
    .description('revoke a token, or all tokens of a user; their held requests end immediately')
    .option('--id <id>', 'the id from `token list`')
    .option('--all', 'all tokens and sessions of the user given by --email')
    .option('--email <email>', "the user's e-mail address; use it with --all", parseEmail)
    .action((options: { id?: string; all?: true; email?: string }) =>
      run(async (context) => {
        const { id, all, email: address } = options;
        if (id === undefined && all && address !== undefined) return revokeAll(context, address);
        if (id === undefined || all || address !== undefined)
          throw new CommandError('give either --id, or both --all and --email');
        const { userId, tokenId } = TOKEN_ID.exec(id)?.groups ?? {};
        const isRevoked =
          userId !== undefined && (await revokeTokenById(context.database, Number(userId), Number(tokenId)));
        if (!isRevoked) throw new CommandError('no valid token has this id');
        notifyPolls(context, Number(userId));
        return { revoked: true };
      }, ANY_SCHEMA),
    );
}

async function revokeAll(context: AdminContext, address: string): Promise<object> {
  const userId = await requireUserId(context, address);
  const revoked = await revokeAllTokens(context.database, userId);
  notifyPolls(context, userId);
  return { revoked };
}

function addEpochCommands(epoch: Command, run: RunCommand): void {
  epoch
    .command('renew')
    .description('make all clients of /bookmarks/changes start over, after a volume snapshot was restored')
    .action(() => run(async ({ database }) => ({ epoch: await beginEpoch(database) }), ANY_SCHEMA));
}

function addAuditCommands(audit: Command, run: RunCommand): void {
  audit
    .command('list')
    .description('list the commands of operators, newest first')
    .option('--before <id>', 'only commands with a lower id', parseId, Number.MAX_SAFE_INTEGER)
    .addOption(
      new Option('--limit <limit>', 'the maximum number of commands').argParser(parseLimit).default(100),
    )
    .action(({ before, limit }: { before: number; limit: number }) =>
      run(async ({ database }) => {
        const actions = await listAudit(database, before, limit + 1);
        return { actions: actions.slice(0, limit), has_more: actions.length > limit };
      }),
    );
}

/** Returns the audit record of a command: its name, and the options that were typed. `audit list` is not recorded. */
function describeCommand(command: Command, operator: string | undefined): AuditedCommand | undefined {
  const action = `${command.parent?.name()} ${command.name()}`;
  if (action === 'audit list') return undefined;
  const typedOptions = Object.entries(command.opts())
    .filter(([name]) => command.getOptionValueSource(name) === 'cli')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const object = typedOptions
    .map(([name, value]) => (value === true ? `--${name}` : `--${name} ${value}`))
    .join(' ');
  return { operator: operator ?? null, action, object };
}

/** Adds `user`, `invite`, `token`, `epoch` and `audit` to the `admin` command. */
export function addAdminCommands(admin: Command, host: CommandHost): void {
  admin.addOption(
    new Option('--operator <name>', 'your name for `audit list`; default: ADMIN_OPERATOR').argParser(
      parseName,
    ),
  );
  let runningCommand: Command | undefined;
  admin.hook('preAction', (_, command) => {
    runningCommand = command;
  });
  const run = commandRunner(host, ({ adminOperator }) => {
    const { operator = adminOperator } = admin.opts<{ operator?: string }>();
    return runningCommand && describeCommand(runningCommand, operator);
  });
  addUserCommands(admin.command('user').description('manage users'), run);
  addInviteCommands(admin.command('invite').description('issue invites'), run);
  addTokenCommands(admin.command('token').description('manage tokens'), run);
  addEpochCommands(admin.command('epoch').description('restart the change history after a restore'), run);
  addAuditCommands(admin.command('audit').description('show what operators did'), run);
}
