import type { Command } from 'commander';
import { gatherTags, readTagName } from './arguments.ts';
import { type CommandNode, flagsOf, listNodes, readTree, takesValue } from './command-tree.ts';

/**
 * Completion scripts, generated from the commands that commander knows. For tags, the scripts run the hidden command
 * `complete-tags`.
 */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** Writes the completion script for a shell. */
export function writeCompletion(program: Command, shell: Shell): string {
  const root = readTree(program);
  return { bash: writeBash, zsh: writeZsh, fish: writeFish }[shell](listNodes(root), root);
}

interface Word {
  word: string;
  description: string;
}

/** Lists the subcommands of a command. If it has none, lists the choices of its first argument. */
function listWords({ commands, command }: CommandNode): Word[] {
  if (commands.length > 0) {
    return commands.map((inner) => ({
      word: inner.command.name(),
      description: inner.command.description(),
    }));
  }
  return (command.registeredArguments[0]?.argChoices ?? []).map((word) => ({ word, description: '' }));
}

/** Lists the options of a command, including the global ones. */
function listOptions(node: CommandNode, root: CommandNode): Word[] {
  const options = node === root ? root.options : [...node.options, ...root.options];
  const words = options.flatMap((option) =>
    flagsOf(option)
      .filter((flag) => flag.startsWith('--'))
      .map((word) => ({ word, description: option.description })),
  );
  // A command's own option hides the global option of the same name.
  return words.filter(({ word }, i) => words.findIndex((other) => other.word === word) === i);
}

/** Whether the arguments of a command are names of tags. */
const takesTagNames = ({ command }: CommandNode): boolean =>
  command.registeredArguments[0]?.parseArg === readTagName;

/**
 * Lists the options that take a value, with the choices for the value, and whether it is a list of tags. Without
 * choices or tags, the shell offers file names.
 */
const listValueOptions = (nodes: readonly CommandNode[]) =>
  nodes.flatMap(({ path, options }) =>
    options.filter(takesValue).map((option) => ({
      path,
      flags: flagsOf(option),
      choices: option.argChoices ?? [],
      takesTags: option.parseArg === gatherTags,
    })),
  );

/** Puts a text in single quotes, which all three shells understand. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const join = (words: readonly Word[]): string => words.map(({ word }) => word).join(' ');

/** Returns a pattern for `case` in a shell script. It matches the path of every command, for example `tags rename`. */
const pathCases = (nodes: readonly CommandNode[]): string =>
  nodes
    .slice(1)
    .map(({ path }) => quote(path))
    .join('|');

/** Writes the script for bash. In the script, `at` is the path of the command that the user has typed so far. */
function writeBash(nodes: readonly CommandNode[], root: CommandNode): string {
  const valueCases = listValueOptions(nodes).map(({ path, flags, choices, takesTags }) => {
    // A global option has the path '' and may follow any command, so its pattern begins with `*` outside the quotes.
    const patterns = flags.map((flag) => (path === '' ? `*' ${flag}'` : quote(`${path} ${flag}`)));
    if (takesTags) return `    ${patterns.join('|')}) _bookmarks_tags --list; return ;;`;
    return `    ${patterns.join('|')}) COMPREPLY=($(compgen -W ${quote(choices.join(' '))} -- "$cur")); return ;;`;
  });
  const commandCases = nodes.map(
    (node) =>
      `    ${quote(node.path)}) words=${quote(join(listWords(node)))}; options=${quote(join(listOptions(node, root)))}${takesTagNames(node) ? '; tags=1' : ''} ;;`,
  );
  return `# bash completion for bookmarks. Load it: source <(bookmarks completion bash)
_bookmarks_tags() {
  local text=\${COMP_WORDS[COMP_CWORD]} is_quoted='' name
  case "$text" in \\"*|\\'*) is_quoted=1; text=\${text:1} ;; *) text=\${text//\\\\/} ;; esac
  while IFS= read -r name; do
    [[ $is_quoted ]] || printf -v name %q "$name"
    COMPREPLY+=("$name")
  done < <(bookmarks complete-tags "$@" -- "$text" 2>/dev/null)
}
_bookmarks() {
  local cur=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} at='' tags='' word words options
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${at:+$at }$word" in ${pathCases(nodes)}) at="\${at:+$at }$word" ;; esac
  done
  COMPREPLY=()
  case "$at $previous" in
${valueCases.join('\n')}
  esac
  case "$at" in
${commandCases.join('\n')}
  esac
  [[ $cur == -* ]] && words=$options
  [[ $tags && $cur != -* ]] && { _bookmarks_tags; return; }
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _bookmarks bookmarks
`;
}

/** Writes the script for zsh. In the script, `at` is the path of the command that the user has typed so far. */
function writeZsh(nodes: readonly CommandNode[], root: CommandNode): string {
  const describe = (words: readonly Word[]) =>
    words
      .map(({ word, description }) =>
        quote(`${word}${description && ':'}${description.replaceAll(':', '\\:')}`),
      )
      .join(' ');
  const valueCases = listValueOptions(nodes).map(({ path, flags, choices, takesTags }) => {
    // A global option has the path '' and may follow any command, so its pattern begins with `*` outside the quotes.
    const patterns = flags.map((flag) => (path === '' ? `*' ${flag}'` : quote(`${path} ${flag}`)));
    if (takesTags) return `    ${patterns.join('|')}) _bookmarks_tags --list; return ;;`;
    const offer =
      choices.length > 0 ? `found=(${choices.map(quote).join(' ')}); _describe value found` : '_files';
    return `    ${patterns.join('|')}) ${offer}; return ;;`;
  });
  const commandCases = nodes.map(
    (node) =>
      `    ${quote(node.path)}) found=(${describe(listWords(node))}); options=(${describe(listOptions(node, root))})${takesTagNames(node) ? '; tags=1' : ''} ;;`,
  );
  return `#compdef bookmarks
# zsh completion for bookmarks. Load it: source <(bookmarks completion zsh), after compinit; or save it in a folder of fpath as _bookmarks
_bookmarks_tags() {
  local -a found
  found=(\${(f)"$(bookmarks complete-tags "$@" -- "\${(Q)words[CURRENT]}" 2>/dev/null)"})
  # The names may differ from the typed text in case, so zsh must not filter them (-U).
  (( \${#found} )) && compadd -U -a found
}
_bookmarks() {
  local at='' tags='' word
  local -a found options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${at:+$at }$word" in (${pathCases(nodes)}) at="\${at:+$at }$word" ;; esac
  done
  case "$at \${words[CURRENT-1]}" in
${valueCases.join('\n')}
  esac
  case "$at" in
${commandCases.join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then _describe option options
  elif [[ -n $tags ]]; then _bookmarks_tags
  elif (( \${#found} )); then _describe command found
  else _files
  fi
}
if [[ \${funcstack[1]} == _bookmarks ]]; then _bookmarks "$@"; else compdef _bookmarks bookmarks; fi
`;
}

/**
 * Writes the script for fish. Each `complete` line offers a word or an option. If the line has a condition (`-n`), fish
 * evaluates it first. fish also offers file names unless the line has `-f` or `-x`.
 */
function writeFish(nodes: readonly CommandNode[]): string {
  const fishQuote = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`;
  const lines = nodes.flatMap((node) => {
    // Global options have no condition, so fish offers them after every command.
    const condition = node.path === '' ? '' : ` -n ${fishQuote(`__bookmarks_at ${fishQuote(node.path)}`)}`;
    const atRoot = ` -n ${fishQuote("__bookmarks_at ''")}`;
    const words = listWords(node).map(
      ({ word, description }) =>
        `complete -c bookmarks -f${condition || atRoot} -a ${fishQuote(word)} -d ${fishQuote(description)}`,
    );
    const tags = takesTagNames(node) ? [`complete -c bookmarks -f${condition} -a '(__bookmarks_tags)'`] : [];
    const options = node.options.map((option) => {
      const value =
        option.parseArg === gatherTags
          ? "-x -a '(__bookmarks_tags --list)'"
          : option.argChoices
            ? `-x -a ${fishQuote(option.argChoices.join(' '))}`
            : '-r';
      const flags = [
        option.short && `-s ${option.short.slice(1)}`,
        option.long && `-l ${option.long.slice(2)}`,
        takesValue(option) && value,
      ].filter(Boolean);
      return `complete -c bookmarks${condition} ${flags.join(' ')} -d ${fishQuote(option.description)}`;
    });
    return [...words, ...tags, ...options];
  });
  return `# fish completion for bookmarks. Load it: bookmarks completion fish | source
function __bookmarks_at --description 'Whether the words before the cursor name this command'
  set -l at ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$at $word")
    contains -- $next ${nodes
      .slice(1)
      .map(({ path }) => fishQuote(path))
      .join(' ')}; and set at $next
  end
  test "$at" = "$argv[1]"
end
function __bookmarks_tags --description 'The tags that begin with the word before the cursor'
  set -l text (commandline -ct | string unescape)
  bookmarks complete-tags $argv -- "$text" 2>/dev/null
end
${lines.join('\n')}
`;
}
