import { parseSync } from 'rolldown/utils';

// From a source file's syntax tree, reads the facts that the rules need. All forms of imports count.

export interface Mention {
  text: string;
  line: number;
}

export interface SourceFacts {
  /**
   * The imported modules. These forms of imports count: of values, of types, for side effects, re-exports, `import()`,
   * `import('…')` as a type, and `/// <reference`.
   */
  imports: Mention[];
  /** Module paths outside imports: the first argument of `new URL`, `import.meta.resolve` or similar. */
  paths: Mention[];
  /** Imports of modules whose names the code computes. */
  computedImports: Mention[];
  /** Places that read the environment, or pass the whole `process` on. */
  environment: Mention[];
  /** The tags of tagged templates. A call of the driver's method `unsafe` counts as the tag `unsafe`. */
  tags: Mention[];
  /**
   * The code's strings and templates. In templates, `FILLED_IN` stands for each inserted value. The names of imported
   * modules are left out.
   */
  texts: Mention[];
  lines: number;
}

/** Stands for an inserted value in the text of a template. */
export const FILLED_IN = '<>';

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
  return (node.quasis as { value: { cooked: string | null } }[])
    .map(({ value }) => value.cooked)
    .join(FILLED_IN);
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
  const facts: SourceFacts = {
    imports: [],
    paths: [],
    computedImports: [],
    environment: [],
    tags: [],
    texts: [],
    lines: code.trimEnd().split('\n').length,
  };
  const visit = (node: Node, parent: Node | undefined): void => {
    const add = (to: Mention[], text: string) => to.push({ text, line: lineAt(node.start) });
    const module = importedBy(node);
    if (module !== undefined) add(facts.imports, module);
    const path = pathIn(node);
    if (path !== undefined) add(facts.paths, path);
    if (node.type === 'ImportExpression' && textOf(node.source) === undefined)
      add(facts.computedImports, 'import()');
    if (readsEnvironment(node, parent)) add(facts.environment, 'process');
    if (node.type === 'TaggedTemplateExpression') add(facts.tags, nameOf(node.tag) ?? '');
    if (node.type === 'CallExpression' && nameOf(node.callee) === 'unsafe') add(facts.tags, 'unsafe');
    const text = textOf(node);
    if (text !== undefined && !isModuleName(parent)) add(facts.texts, text);
    for (const child of childrenOf(node)) visit(child, node);
  };
  visit(program as unknown as Node, undefined);
  for (const { 1: text, index } of code.matchAll(/^\/\/\/\s*<reference\s+(?:path|types)=["'](.+?)["']/gm))
    facts.imports.push({ text: text!, line: lineAt(index) });
  return facts;
}

const DECLARATIONS = ['ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration'];

const isModuleName = (parent: Node | undefined): boolean =>
  parent !== undefined &&
  [...DECLARATIONS, 'ImportExpression', 'TSImportType', 'TSExternalModuleReference'].includes(parent.type);

/** Returns the module that an import names. */
const importedBy = (node: Node): string | undefined =>
  isModuleName(node) ? textOf(node.source ?? node.argument ?? node.expression) : undefined;

/**
 * Returns the module that a call names in its first argument. This argument must be a relative path or begin with `#`,
 * unless the call is `import.meta.resolve(…)`.
 */
function pathIn(node: Node): string | undefined {
  if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return undefined;
  const text = textOf((node.arguments as Node[])[0]);
  return text !== undefined && (/^(\.|#)/.test(text) || nameOf(node.callee) === 'resolve') ? text : undefined;
}

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
