/** A Markdown document as the checks of documents read it: enough of CommonMark and of GitHub's anchors for ours. */

export interface Fence {
  /** `sh`, `ts`, … ; empty where none is named. */
  language: string;
  text: string;
}

/** A paragraph, list item, heading or table row: what stands together. */
export interface Block {
  /** From 1. */
  line: number;
  lines: string[];
  text: string;
  kind: 'paragraph' | 'item' | 'heading' | 'row';
  /** What stands in backticks. */
  spans: string[];
}

export interface Markdown {
  /** From the project's folder: `docs/contract.md`. */
  path: string;
  text: string;
  lineCount: number;
  blocks: Block[];
  fences: Fence[];
  /** The anchors of its headings. */
  anchors: Set<string>;
  /** Targets of its links, without those to other sites. */
  links: string[];
}

const FENCE = /^```(\w*)\n([\s\S]*?)^```$/gm;

/** The anchor that GitHub gives a heading. */
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

/** Blank lines part blocks; headings, rows and items begin new ones. */
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

/** Reads a document. Line numbers of blocks are those of the file. */
export function parseMarkdown(path: string, text: string): Markdown {
  const fences = [...text.matchAll(FENCE)].map(([, language, code]) => ({
    language: language!,
    text: code!,
  }));
  // As many lines, so that all others keep their numbers.
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

/** The cells of a table's row. */
export const cellsOf = (row: string): string[] =>
  row
    .trim()
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim());

/** The rows below the header that begins so, as cells. */
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

/** What stands in backticks in a text. */
export const codeIn = (text: string): string[] => spansOf(text);
