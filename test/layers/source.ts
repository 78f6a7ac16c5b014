import { parseSync } from 'rolldown/utils';

// From a source file's syntax tree, reads the facts that the rules need.

interface Mention {
  text: string;
  line: number;
}

interface SourceFacts {
  /** Places that read the environment, or pass the whole `process` on. */
  environment: Mention[];
  /** The tags of tagged templates. A call of the driver's method `unsafe` counts as the tag `unsafe`. */
  tags: Mention[];
  /** The code's strings and templates. In templates, `<>` stands for each inserted value. */
  texts: Mention[];
}

interface Node {
  type: string;
  start: number;
  [key: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** Returns the direct children of a node. */
const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode);

/** Returns the text of a literal or template. Undefined for other nodes. */
function textOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined;
  if (node.type !== 'TemplateLiteral') return undefined;
  return (node.quasis as { value: { cooked: string | null } }[]).map(({ value }) => value.cooked).join('<>');
}

/** Returns the last name of an expression: `b` for both `b` and `a.b`. */
function nameOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Identifier') return node.name as string;
  if (node.type === 'MemberExpression') return textOf(node.property) ?? nameOf(node.property);
  return undefined;
}

const isProcess = (node: unknown): boolean => nameOf(node) === 'process';

/** Reads a file. Throws if its syntax is invalid. */
export function readSource(path: string, code: string): SourceFacts {
  const { program, errors } = parseSync(path, code);
  if (errors.length > 0) throw new SyntaxError(`${path}: ${errors[0]!.message}`);
  const lineStarts = [...code.matchAll(/^/gm)].map(({ index }) => index);
  const lineAt = (start: number) => lineStarts.findLastIndex((at) => at <= start) + 1;
  const facts: SourceFacts = { environment: [], tags: [], texts: [] };
  const visit = (node: Node, parent: Node | undefined): void => {
    const add = (to: Mention[], text: string) => to.push({ text, line: lineAt(node.start) });
    if (readsEnvironment(node, parent)) add(facts.environment, 'process');
    if (node.type === 'TaggedTemplateExpression') add(facts.tags, nameOf(node.tag) ?? '');
    if (node.type === 'CallExpression' && nameOf(node.callee) === 'unsafe') add(facts.tags, 'unsafe');
    const text = textOf(node);
    if (text !== undefined) add(facts.texts, text);
    for (const child of childrenOf(node)) visit(child, node);
  };
  visit(program as unknown as Node, undefined);
  return facts;
}

/** Returns the module that an import or export names. */
const importedBy = (node: Node): string | undefined =>
  /^(Import|Export)/.test(node.type) ? textOf(node.source) : undefined;

/**
 * Returns whether a node reads the environment: `process.env` in any form, `{ env } = process`, `import { env } from
 * 'node:process'`, or `process` as a value. Code that receives `process` as a value could read anything.
 */
function readsEnvironment(node: Node, parent: Node | undefined): boolean {
  if (/^(node:)?process$/.test(importedBy(node) ?? '')) return true;
  if (node.type === 'MemberExpression') return isProcess(node.object) && nameOf(node) === 'env';
  if (node.type !== 'Identifier' || node.name !== 'process' || parent === undefined) return false;
  if (parent.type === 'MemberExpression' && parent.object === node) {
    return parent.computed === true && textOf(parent.property) === undefined;
  }
  if (parent.type === 'VariableDeclarator' && parent.init === node)
    return takesEnvironment(parent.id as Node);
  // The name `process` may also occur as `a.process`, as the key of `{ process: 1 }`, or as a type. These are harmless.
  const isName = parent.type === 'MemberExpression' || (parent.key === node && parent.value !== node);
  return !isName && !parent.type.startsWith('TS');
}

/** Returns whether a destructuring takes `env`, or has a rest element that would contain it. */
function takesEnvironment(pattern: Node): boolean {
  if (pattern.type !== 'ObjectPattern') return true;
  return (pattern.properties as Node[]).some(
    ({ key, computed }) => computed === true || (textOf(key) ?? nameOf(key) ?? 'env') === 'env',
  );
}
