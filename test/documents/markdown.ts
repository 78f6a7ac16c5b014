/** Parses Markdown documents. Supports GitHub's anchors, and the subset of CommonMark that our documents use. */

export interface Fence {
  /** The language, such as `sh` or `ts`. Empty if none is given. */
  language: string;
  text: string;
}

/** A paragraph, list item, heading or table row. */
export interface Block {
  /** The number of the first line, counted from 1. */
  line: number;
  lines: string[];
  text: string;
  kind: 'paragraph' | 'item' | 'heading' | 'row';
  /** The texts of the code spans. */
  spans: string[];
}

export interface Markdown {
  /** The path relative to the project's folder, such as `docs/contract.md`. */
  path: string;
  text: string;
  lineCount: number;
  blocks: Block[];
  fences: Fence[];
  /** The anchors of the document's headings. */
  anchors: Set<string>;
  /** The targets of the document's links, except external ones. */
  links: string[];
}

const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm;

/** Returns the anchor that GitHub creates for a heading. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');

function kindOf(line: string): Block['kind'] {
  if (/^#{1,6} /.test(line)) return 'heading';
  if (/^\s*([-*]|\d+\.) /.test(line)) return 'item';
  return line.startsWith('|') ? 'row' : 'paragraph';
}

const spansOf = (text: string): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, span]) => span!.replaceAll('\n', ' '));

/** Splits a text into blocks. Blank lines separate blocks. Each heading, table row and list item begins a new block. */
function readBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const kind = kindOf(line);
    if (line.trim() === '') open = undefined;
    else if (open === undefined || kind !== 'paragraph') {
      open = { line: index + 1, lines: [line], text: '', kind, spans: [] };
      blocks.push(open);
    } else open.lines.push(line);
  }
  for (const block of blocks) {
    block.text = block.lines.map((line) => line.trim()).join('\n');
    block.spans = spansOf(block.text);
  }
  return blocks;
}

function anchorsOf(blocks: readonly Block[]): Set<string> {
  const anchors = new Set<string>();
  for (const { kind, text } of blocks) {
    if (kind !== 'heading') continue;
    const slug = slugOf(text.replace(/^#+ /, '').trim());
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Parses a document. Each block has its line number in the file. */
export function parseMarkdown(path: string, text: string): Markdown {
  const fences = [...text.matchAll(FENCE)].map(([, language, code]) => ({
    language: language!,
    text: code!,
  }));
  // Removes code blocks but keeps their line breaks, so that line numbers stay correct.
  const prose = text.replace(FENCE, (fence) => fence.replace(/[^\n]/g, ''));
  const blocks = readBlocks(prose);
  const links = [...prose.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target]) => target!);
  return {
    path,
    text,
    lineCount: text.trimEnd().split('\n').length,
    blocks,
    fences,
    anchors: anchorsOf(blocks),
    links: links.filter((target) => !/^[a-z]+:/.test(target)),
  };
}

/** Returns the cells of a table row. */
const cellsOf = (row: string): string[] =>
  row
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim());

/** Returns the cells of each row below a table header that starts with this text. */
export function tableOf(document: Markdown, header: string): string[][] {
  const rows: string[][] = [];
  let isOpen = false;
  for (const block of document.blocks) {
    if (block.kind !== 'row') isOpen = false;
    else if (block.text.startsWith(header)) isOpen = true;
    else if (isOpen && !/^\|[\s|:-]+$/.test(block.text)) rows.push(cellsOf(block.text));
  }
  return rows;
}

/** Returns the code spans in a text. */
export const codeIn = (text: string): string[] => spansOf(text);
