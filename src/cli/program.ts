import { readFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { Command, CommanderError } from 'commander';
import { addAccountCommands } from './commands/account.ts';
import { addBookmarkCommands } from './commands/bookmarks.ts';
import { addCompletionCommand } from './commands/completion.ts';
import { addExportCommand } from './commands/export.ts';
import { addImportCommand } from './commands/import.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addMirrorCommand } from './commands/mirror.ts';
import { addSyncCommand } from './commands/sync.ts';
import { addTagCommands } from './commands/tags.ts';
import { addTokenCommands } from './commands/tokens.ts';
import { addTrashCommands } from './commands/trash.ts';
import { writeOutControls } from './display-text.ts';
import type { Environment } from './environment.ts';
import { describeFault, EXIT, exitCodeOf, Interrupted } from './faults.ts';
import type { Run, Session } from './session.ts';
import { type Streams, Terminal } from './terminal.ts';

/** Reads the version from package.json, which has the same relative path in the repository and in the package. */
const readVersion = (): string =>
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;

const HELP = `
Environment: BOOKMARKS_URL, BOOKMARKS_TOKEN (instead of a login), XDG_CONFIG_HOME, NO_COLOR, BROWSER,
  HTTP_PROXY, HTTPS_PROXY and NO_PROXY (Node 24.14 or newer; from Node 22.21 on with NODE_USE_ENV_PROXY=1)
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 denied, 5 limit reached, 6 unavailable, 130 interrupted`;

/** Runs a command line. Resolves with the exit code and never rejects. */
export async function runCli(
  args: readonly string[],
  environment: Environment,
  streams: Streams,
  signal: AbortSignal,
): Promise<number> {
  let session: Session | undefined;
  const isJson = args.includes('--json');
  // With --json, commander must print no errors, because `printUsageFault` prints them as JSON.
  const commanderStreams = {
    ...streams,
    stderr: isJson ? new Writable({ write: (_chunk, _encoding, done) => done() }) : streams.stderr,
  };
  const program = buildProgram(commanderStreams, (command) => async (...given) => {
    // The last of the `given` arguments is commander's own `Command`. The function `command` does not need it.
    const { json = false, url } = program.opts();
    const terminal = new Terminal(streams, { json, plain: environment.plain });
    session = { terminal, environment, signal, url, baseUrl: undefined, usesVariable: false };
    await command(session, ...given.slice(0, -1));
  });
  try {
    await program.parseAsync(protectNegations(program, args), { from: 'user' });
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    if (error instanceof CommanderError) return printUsageFault(error, args, streams);
    if (signal.aborted || error instanceof Interrupted) return EXIT.interrupted;
    return printFault(error, session, streams);
  }
}

/**
 * Puts a space before arguments of `search` such as `-word` and `-tag:name`. Otherwise commander would read them as
 * options. The search ignores the space.
 */
function protectNegations(program: Command, args: readonly string[]): string[] {
  const commandName = args.find((arg) => program.commands.some((each) => each.name() === arg));
  if (commandName !== 'search') return [...args];
  const end = args.indexOf('--');
  // The options with one letter are `-t` and `-h`.
  const isNegation = (arg: string) => /^-(?!-|[th]$)./.test(arg);
  return args.map((arg, index) => (isNegation(arg) && (end === -1 || index < end) ? ` ${arg}` : arg));
}

/** Defines all commands with their options and descriptions. */
export function buildProgram(streams: Streams, run: Run): Command {
  const program = new Command('bookmarks')
    .description('Manage your bookmarks at the Bookmark Service')
    .version(readVersion(), '--version')
    .option('--url <address>', 'address of the service (default: BOOKMARKS_URL, or the last login)')
    .option('--json', 'print results as JSON, for scripts')
    .showHelpAfterError('(use --help for more information)')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', HELP);
  configure(program, streams);
  addAccountCommands(program, run);
  addBookmarkCommands(program, run);
  addTagCommands(program, run);
  addTrashCommands(program, run);
  addTokenCommands(program, run);
  addImportCommand(program, run);
  addExportCommand(program, run);
  addSyncCommand(program, run);
  addMirrorCommand(program, run);
  addMcpCommand(program, run);
  addCompletionCommand(program, run);
  for (const command of program.commands) {
    configure(command, streams);
    for (const inner of command.commands) configure(inner, streams);
  }
  return program;
}

/** Makes commander write to the given streams, and throw instead of ending the process. */
function configure(command: Command, { stdout, stderr }: Streams): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) });
}

/** Prints a usage error if `--json` is given. Otherwise commander has printed the error already. */
function printUsageFault(
  { message, code }: CommanderError,
  args: readonly string[],
  streams: Streams,
): number {
  if (args.includes('--json')) {
    const error = code === 'commander.help' ? 'a command is missing' : message.replace(/^error: /, '');
    streams.stderr.write(`${JSON.stringify({ error, code: 'USAGE' })}\n`);
  }
  return EXIT.usage;
}

/** Prints an error and returns the exit code. */
function printFault(error: unknown, session: Session | undefined, { stderr }: Streams): number {
  const print = (text: string) => stderr.write(`${writeOutControls(text)}\n`);
  const fault = describeFault(error, session?.usesVariable);
  if (fault === undefined) print((error instanceof Error && error.stack) || String(error));
  else if (session?.terminal.isJson) print(JSON.stringify(fault));
  else {
    print(`bookmarks: ${fault.error}`);
    if (fault.advice !== undefined) print(fault.advice);
    if (fault.code === 'INTERNAL_ERROR') print(`Request id: ${fault.request_id}`);
  }
  return exitCodeOf(fault);
}
