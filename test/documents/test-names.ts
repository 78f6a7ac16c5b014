/** `describe`, `test`, `browserTest`, and what follows `.each(…)`, `.runIf(…)` and the like, with the name that it is given. */
const NAMED =
  /(?:\b(?:describe|test|browserTest)(?:\.\w+)*(?:<[^()]*>)?|[\])}])\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;

const COMMENT = /^\s*(?:\/\/.*|\/\*\*?[\s\S]*?\*\/\s*)$/gm;

/** A group that is skipped, with all that is in it: formatted code ends it at its own indentation. */
const SKIPPED_GROUP = /^([ \t]*)describe(?:\.\w+)*\.(?:skip|todo)\b[\s\S]*?^\1\}.*$/gm;

/** The names of the groups and tests in a test file's text that are run: not of skipped ones, nor of those in comments. */
export function testNamesIn(text: string): Set<string> {
  const code = text.replace(COMMENT, '').replace(SKIPPED_GROUP, '');
  const names = new Set<string>();
  for (const [call, , name] of code.matchAll(NAMED)) {
    if (!/\.(skip|todo)\b/.test(call)) names.add(name!.replaceAll(/\\(.)/g, '$1'));
  }
  return names;
}
