import { Argument, type Command } from 'commander';
import { foldText } from '../../domain/text.ts';
import { SHELLS, type Shell, writeCompletion } from '../completion.ts';
import { toLine } from '../display-text.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** How long a shell waits for the service while it completes a tag, in ms. */
const TAGS_WAIT_MS = 2_000;

/** Adds the command `completion`, and the hidden command by which its scripts complete tags. */
export function addCompletionCommand(program: Command, run: Run): void {
  program
    .command('completion')
    .description('print a completion script for your shell')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText(
      'after',
      '\nbash, in ~/.bashrc: source <(bookmarks completion bash)' +
        '\nzsh, in ~/.zshrc after compinit: source <(bookmarks completion zsh)' +
        '\nfish: bookmarks completion fish > ~/.config/fish/completions/bookmarks.fish',
    )
    .action(
      run(async ({ terminal }: Session, shell: Shell) => {
        const script = writeCompletion(program, shell);
        await terminal.print({ shell, script }, () => script.trimEnd());
      }),
    );
  program
    .command('complete-tags', { hidden: true })
    .argument('<text>')
    .option('--list')
    .action(run(completeTags));
}

/**
 * Prints the tags whose names begin with a text, ignoring case, most used first. With `--list`, the text is a list of
 * tags with commas between them, and its last tag is completed.
 */
async function completeTags(
  session: Session,
  text: string,
  { list = false }: { list?: boolean },
): Promise<void> {
  const client = await openOwnClient(session);
  const { tags } = await client.listTags({
    signal: session.signal,
    timeoutMs: TAGS_WAIT_MS,
    retryForMs: 0,
  });
  const before = list ? text.slice(0, text.lastIndexOf(',') + 1) : '';
  const key = foldText(text.slice(before.length));
  const names = tags.map(({ name }) => name).filter((name) => foldText(name).startsWith(key));
  // A list cannot contain a name with a comma.
  const usable = names.filter((name) => !list || !name.includes(','));
  await session.terminal.write(usable.map((name) => `${toLine(before + name)}\n`).join(''));
}
