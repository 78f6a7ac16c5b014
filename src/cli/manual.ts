import type { Command } from 'commander';
import { type CommandNode, listNodes, readTree } from './command-tree.ts';
import { EXIT } from './faults.ts';

const EXIT_MEANINGS: Record<keyof typeof EXIT, string> = {
  done: 'Done.',
  failed: 'Failed for another reason.',
  usage: 'Wrong usage, or a value that the service refused.',
  notFound: 'Something that was named does not exist.',
  denied: 'Not logged in, or the token does not allow this.',
  limit: 'A limit is reached: requests, or bookmarks of the account.',
  unavailable: 'The service cannot be reached, or is unavailable for now.',
};

/** Text in roff: no character of it is a command. */
const toRoff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(['.])/gm, '\\&$1');

const describeEntry = (term: string, text: string): string =>
  `.TP\n.B ${toRoff(term)}\n${text && `${toRoff(text)}\n`}`;

/** The manual page `bookmarks(1)`, generated from commander's commands. */
export function writeManual(program: Command): string {
  const root = readTree(program);
  const commands = listNodes(root)
    .slice(1)
    .filter(({ commands }) => commands.length === 0);
  const exits = Object.entries(EXIT_MEANINGS).map(([name, text]) =>
    describeEntry(String(EXIT[name as keyof typeof EXIT]), text),
  );
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
${exits.join('')}${describeEntry('130', 'Interrupted by Ctrl-C.')}.SH ENVIRONMENT
${describeEntry('BOOKMARKS_URL', 'The service. The option --url has precedence over it.')}${describeEntry(
  'BOOKMARKS_TOKEN',
  'The token, in the place of a login.',
)}${describeEntry('XDG_CONFIG_HOME', 'The folder in which the login is stored, in bookmark-service/credentials.json.')}${describeEntry(
  'NO_COLOR',
  'If set, no text is bold.',
)}${describeEntry('BROWSER', 'The program that shows a web page.')}`;
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
