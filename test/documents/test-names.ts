/**
 * Matches `describe`, `test` and `browserTest`, with modifiers such as `.each(…)` and `.runIf(…)`, and captures the
 * name.
 */
const NAMED =
  /(?:\b(?:describe|test|browserTest)(?:\.\w+)*(?:<[^()]*>)?|[\])}])\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;

const COMMENT = /^\s*(?:\/\/.*|\/\*\*?[\s\S]*?\*\/\s*)$/gm;

/**
 * A skipped group with its content. The code is formatted, so the group ends at the first closing brace that is
 * indented like the group's first line.
 */
const SKIPPED_GROUP = /^([ \t]*)describe(?:\.\w+)*\.(?:skip|todo)\b[\s\S]*?^\1\}.*$/gm;

/** Returns the names of the groups and tests that run. Leaves out skipped tests and tests in comments. */
export function testNamesIn(text: string): Set<string> {
  const code = text.replace(COMMENT, '').replace(SKIPPED_GROUP, '');
  const names = new Set<string>();
  for (const [call, , name] of code.matchAll(NAMED)) {
    if (!/\.(skip|todo)\b/.test(call)) names.add(name!.replaceAll(/\\(.)/g, '$1'));
  }
  return names;
}
