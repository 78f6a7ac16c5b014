import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import { addAdminCommands } from './admin/commands.ts';
import { CommandError, type CommandHost } from './admin/run.ts';
import { ConfigError } from './config.ts';
import { EmbeddedPostgresError } from './embedded/errors.ts';
import { describeError } from './observability/log.ts';
import { runMigrations } from './process/run-migrations.ts';
import { type ServingRole, serve } from './process/serve.ts';
import { DatabaseUnavailable } from './store/driver/errors.ts';
import { SchemaMismatch } from './store/schema/migrations.ts';
import { ShardingRefused } from './store/schema/sharding.ts';

/** The commands of `node src/main.ts`: the roles of a serving process, `migrate`, and the admin commands. */

const ROLES: readonly [role: ServingRole, description: string][] = [
  ['all', 'migrate the database, then serve the API and run imports in one process (default)'],
  ['api', 'serve the API'],
  ['worker', 'run imports'],
];

function buildProgram(host: CommandHost): Command {
  const program = new Command('bookmark-service')
    .description(
      'The Bookmark Service. Configure it with environment variables, listed in docs/configuration.md.',
    )
    .showHelpAfterError()
    .exitOverride()
    .configureOutput({ writeOut: (text) => void host.out(text), writeErr: host.err });
  for (const [role, description] of ROLES) {
    program
      .command(role, { isDefault: role === 'all' })
      .description(description)
      .action(() => serve(role));
  }
  program.command('migrate').description('migrate the database to the newest schema').action(runMigrations);
  const admin = program.command('admin').description('manage users, invites and tokens; prints JSON');
  addAdminCommands(admin, host);
  return program;
}

/**
 * Whether the operator can fix the cause of an error. Such an error is printed as its message, without a stack trace.
 */
const isForOperator = (error: unknown): error is Error =>
  [
    CommandError,
    ConfigError,
    EmbeddedPostgresError,
    SchemaMismatch,
    ShardingRefused,
    DatabaseUnavailable,
  ].some((kind) => error instanceof kind);

/**
 * Refuses an unknown command. Without this check, the library `commander` would treat the name as an argument of the
 * default command.
 */
function refuseUnknownCommand(program: Command, name: string | undefined): void {
  const isOptionOrHelp = name?.startsWith('-') || name === 'help';
  if (name === undefined || isOptionOrHelp) return;
  if (program.commands.some((command) => command.name() === name)) return;
  program.error(`error: unknown command '${name}'`);
}

const describeForOperator = (error: Error): string =>
  error instanceof DatabaseUnavailable ? `DATABASE_URL: ${error.message}` : error.message;

/**
 * Runs a command line. Resolves with the exit code when a command has ended, or when a role has started to serve. Never
 * rejects. Admin commands read the configuration of `host`. The roles and `migrate` read `process.env`.
 */
export async function runProgram(args: readonly string[], host: CommandHost): Promise<number> {
  try {
    const program = buildProgram(host);
    refuseUnknownCommand(program, args[0]);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    host.err(`${isForOperator(error) ? describeForOperator(error) : inspect(describeError(error))}\n`);
    return 1;
  }
}
