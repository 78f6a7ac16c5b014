import { Command, CommanderError } from 'commander';
import { addAccountCommands } from './commands/account.ts';
import { addBookmarkCommands } from './commands/bookmarks.ts';
import { addExportCommand } from './commands/export.ts';
import { addImportCommand } from './commands/import.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addMirrorCommand } from './commands/mirror.ts';
import { addSyncCommand } from './commands/sync.ts';
import { addTagCommands } from './commands/tags.ts';
import { addTokenCommands } from './commands/tokens.ts';
import { writeOutControls } from './display-text.ts';
import type { Environment } from './environment.ts';
import { describeFault, Interrupted } from './faults.ts';
import type { Run, Session } from './session.ts';
import { type Streams, Terminal } from './terminal.ts';

/** The exit codes: success; failure; ended by Ctrl-C, with the number that shells use. */
const DONE = 0;
const FAILED = 1;
const INTERRUPTED = 130;

/** Runs a command line; resolves with its exit code and never rejects. */
export async function runCli(
  args: readonly string[],
  environment: Environment,
  streams: Streams,
  signal: AbortSignal,
): Promise<number> {
  let session: Session | undefined;
  const program = buildProgram(streams, (command) => async (...given) => {
    // commander passes the command itself as the last argument.
    const { json, url } = program.opts();
    const terminal = new Terminal(streams, { json, plain: environment.plain });
    session = { terminal, environment, signal, url, baseUrl: undefined };
    await command(session, ...given.slice(0, -1));
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return DONE;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    if (signal.aborted || error instanceof Interrupted) return INTERRUPTED;
    printFault(error, session, streams);
    return FAILED;
  }
}

function buildProgram(streams: Streams, run: Run): Command {
  const program = new Command('bookmarks')
    .description('Your bookmarks at the Bookmark Service')
    .option('--url <address>', 'the service; BOOKMARKS_URL or the last login when absent')
    .option('--json', 'answer in JSON, for scripts', false)
    .showHelpAfterError('(--help tells more)')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      '\nEnvironment: BOOKMARKS_URL, BOOKMARKS_TOKEN (in the place of a login), XDG_CONFIG_HOME, NO_COLOR',
    );
  configure(program, streams);
  addAccountCommands(program, run);
  addBookmarkCommands(program, run);
  addTagCommands(program, run);
  addTokenCommands(program, run);
  addImportCommand(program, run);
  addExportCommand(program, run);
  addSyncCommand(program, run);
  addMirrorCommand(program, run);
  addMcpCommand(program, run);
  for (const command of program.commands) {
    configure(command, streams);
    for (const inner of command.commands) configure(inner, streams);
  }
  return program;
}

/** Lets commander write its messages to the command's streams, and not end the process. */
function configure(command: Command, { stdout, stderr }: Streams): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) });
}

function printFault(error: unknown, session: Session | undefined, { stderr }: Streams): void {
  const print = (text: string) => stderr.write(`${writeOutControls(text)}\n`);
  const fault = describeFault(error, session?.baseUrl);
  if (fault === undefined) print((error as Error)?.stack ?? String(error));
  else if (session?.terminal.isJson) print(JSON.stringify(fault));
  else {
    print(`bookmarks: ${fault.error}`);
    if (fault.advice !== undefined) print(fault.advice);
    if (fault.code === 'INTERNAL_ERROR') print(`Request id: ${fault.request_id}`);
  }
}
