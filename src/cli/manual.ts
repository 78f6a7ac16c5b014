import type { Command } from 'commander';
import { type CommandNode, listNodes, readTree } from './command-tree.ts';
import { EXIT } from './faults.ts';

const EXITS: readonly [code: number, meaning: string][] = [
  [EXIT.done, 'Success.'],
  [EXIT.failed, 'Failed for another reason.'],
  [EXIT.usage, 'Wrong usage, or the service refused a value.'],
  [EXIT.notFound, 'Not found: a bookmark, tag or other object does not exist.'],
  [EXIT.denied, 'Not logged in, or the token does not allow this.'],
  [EXIT.limit, 'A limit was reached: the rate limit, or the number of bookmarks.'],
  [EXIT.unavailable, 'The service cannot be reached, or is temporarily unavailable.'],
  [EXIT.interrupted, 'Interrupted by Ctrl-C.'],
];

/** Escapes a text for roff, so that it contains no commands. */
const toRoff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(['.])/gm, '\\&$1');

/** Formats an entry of a list: a bold term, and an indented text below it. */
const describeEntry = (term: string, text: string): string =>
  `.TP\n.B ${toRoff(term)}\n${text && `${toRoff(text)}\n`}`;

/** Writes the manual page `bookmarks(1)` from the commands that commander knows. */
export function writeManual(program: Command): string {
  const root = readTree(program);
  const commands = listNodes(root)
    .slice(1)
    .filter(({ commands: inner }) => inner.length === 0);
  const exits = EXITS.map(([code, meaning]) => describeEntry(String(code), meaning));
  return `.TH BOOKMARKS 1 "" "bookmarks ${program.version()}" "User Commands"
.SH NAME
bookmarks \\- ${toRoff(program.description())}
.SH SYNOPSIS
.B bookmarks
.RI [ options ]
.I command
.RI [ arguments ]
.SH OPTIONS
${writeOptions(root)}.SH COMMANDS
${commands.map(writeCommand).join('')}.SH EXIT STATUS
${exits.join('')}.SH ENVIRONMENT
${describeEntry('BOOKMARKS_URL', 'The address of the service. The option --url takes precedence.')}${describeEntry(
  'BOOKMARKS_TOKEN',
  'A token to use instead of the stored login.',
)}${describeEntry('XDG_CONFIG_HOME', 'The configuration folder. It holds the login in bookmark-service/credentials.json.')}${describeEntry(
  'NO_COLOR',
  'If set, no text is bold.',
)}${describeEntry('BROWSER', 'The program that opens web pages.')}`;
}

const writeOptions = ({ options, command }: CommandNode): string =>
  options
    .map((option) => describeEntry(option.flags, command.createHelp().optionDescription(option)))
    .join('');

function writeCommand(node: CommandNode): string {
  const { command, path } = node;
  const help = command.createHelp();
  const parameters = command.registeredArguments.filter(({ description }) => description);
  return `.SS ${toRoff(`bookmarks ${path} ${command.usage()}`)}
${toRoff(command.description())}
${parameters.map((each) => describeEntry(each.name(), help.argumentDescription(each))).join('')}${writeOptions(node)}`;
}
