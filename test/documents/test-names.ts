/** `describe`, `test`, `browserTest`, and what follows `.each(…)`, `.runIf(…)` and the like, with the name that it is given. */
const NAMED =
  /(?:\b(?:describe|test|browserTest)(?:\.\w+)*(?:<[^()]*>)?|[\])}])\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;

const COMMENT = /^\s*(?:\/\/.*|\/\*\*?[\s\S]*?\*\/\s*)$/gm;

/** The names of the groups and tests in a test file's text; of a skipped one, or one that only stands in a comment, none. */
export function testNamesIn(text: string): Set<string> {
  const code = text.replace(COMMENT, '');
  const names = new Set<string>();
  for (const [call, , name] of code.matchAll(NAMED)) {
    if (!/\.(skip|todo)\b/.test(call)) names.add(name!.replaceAll(/\\(.)/g, '$1'));
  }
  return names;
}
