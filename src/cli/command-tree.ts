import type { Command, Option } from 'commander';

/** A command as completions and the manual describe it. */
export interface CommandNode {
  /** `tags rename`; empty for the program itself. */
  path: string;
  command: Command;
  commands: CommandNode[];
  options: Option[];
}

/** The commands of a program, as `--help` shows them. */
export function readTree(command: Command, path = ''): CommandNode {
  const help = command.createHelp();
  return {
    path,
    command,
    commands: help
      .visibleCommands(command)
      // commander makes `help` anew for each listing; it completes like any command.
      .map((inner) => readTree(inner, `${path} ${inner.name()}`.trim())),
    options: help.visibleOptions(command),
  };
}

/** The node and everything below it. */
export const listNodes = (node: CommandNode): CommandNode[] => [node, ...node.commands.flatMap(listNodes)];

/** `-t` and `--tag`, as far as the option has them. */
export const flagsOf = ({ short, long }: Option): string[] =>
  [short, long].filter((flag) => flag != null) as string[];

export const takesValue = (option: Option): boolean => option.required || option.optional;
