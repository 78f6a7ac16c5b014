import type { Command, Option } from 'commander';

/** A command with its subcommands and options, for the completion scripts and the manual. */
export interface CommandNode {
  /** The words of the command, for example `tags rename`. Empty for the program itself. */
  path: string;
  command: Command;
  commands: CommandNode[];
  options: Option[];
}

/** Reads the tree of commands that `--help` shows. */
export function readTree(command: Command, path = ''): CommandNode {
  const help = command.createHelp();
  return {
    path,
    command,
    commands: help.visibleCommands(command).map((inner) => readTree(inner, `${path} ${inner.name()}`.trim())),
    options: help.visibleOptions(command),
  };
}

/** Lists a node and its descendants. */
export const listNodes = (node: CommandNode): CommandNode[] => [node, ...node.commands.flatMap(listNodes)];

/** Returns the flags of an option, for example `-t` and `--tag`. */
export const flagsOf = ({ short, long }: Option): string[] => [short, long].flatMap((flag) => flag ?? []);

export const takesValue = (option: Option): boolean => option.required || option.optional;
