import { Argument, type Command } from 'commander';
import { SHELLS, type Shell, writeCompletion } from '../completion.ts';
import type { Run, Session } from '../session.ts';

/** Adds the command `completion`. */
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
}
