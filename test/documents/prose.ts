import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseMarkdown } from './markdown.ts';

/** `npm run prose` lists sentences in documents and comments that may need rewriting. It never fails. */

const ROOT = join(import.meta.dirname, '../..');
const LONGEST_SENTENCE = 30;
const MOST_NUMBERS = 6;

/** Words that often mark an awkward sentence. */
const TO_AVOID =
  /\b(whoever|anew|beside|so many|so long|such as (?:are|have|do)|such a one|of which|(?:has|have) to be|is told|goes by|lies (?:in|on|at|below|beside)|stands? (?:in|on|at|below|beside)|that there is|what is)\b/gi;

interface Passage {
  place: string;
  text: string;
}

const listFiles = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file))
    .sort();

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const passagesOfDocument = (file: string): Passage[] =>
  parseMarkdown(file, read(file))
    .blocks.filter(({ kind }) => kind === 'paragraph' || kind === 'item')
    .map(({ line, text }) => ({ place: `${file}:${line}`, text }));

/** Matches block comments, and consecutive line comments. */
const COMMENT = /\/\*\*?([\s\S]*?)\*\/|(?:^[ \t]*(?:\/\/|--) ?.*\n)+/gm;

function passagesOfCode(file: string): Passage[] {
  const text = read(file);
  return [...text.matchAll(COMMENT)].map(({ 0: comment, index }) => ({
    place: `${file}:${text.slice(0, index).split('\n').length}`,
    text: comment.replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*(?= |$)|\/\/|--) ?|\*\/$/gm, ''),
  }));
}

/**
 * Returns the text without markup, as a reader sees it. A code span counts as one word, and link targets are removed.
 */
const plain = (text: string): string =>
  text
    .replaceAll(/`[^`]*`/g, 'code')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/\s+/g, ' ')
    .trim();

const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}][\p{L}\p{N}'’,.%-]*/gu) ?? [];

function* findings({ place, text }: Passage): Generator<string> {
  const prose = plain(text);
  for (const sentence of prose.split(/(?<=[.!?:;]["”)]?) (?=["“([\p{Lu}\d-])/u)) {
    const length = wordsOf(sentence).length;
    if (length > LONGEST_SENTENCE) yield `${place}: ${length} words: ${sentence.slice(0, 80)}…`;
  }
  const words = wordsOf(prose);
  const numbers = words.filter((word) => /^\d/.test(word)).length;
  if (words.length >= 30 && (numbers * 100) / words.length > MOST_NUMBERS)
    yield `${place}: ${numbers} numbers in ${words.length} words`;
  for (const [word] of prose.matchAll(TO_AVOID)) yield `${place}: "${word}"`;
}

const passages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', ...listFiles('docs', /\.md$/)]
    .filter((file) => readdirSync(ROOT).includes(file) || file.startsWith('docs/'))
    .flatMap(passagesOfDocument),
  ...['src', 'sql'].flatMap((folder) => listFiles(folder, /\.(ts|sql|lua)$/)).flatMap(passagesOfCode),
];
const lines = passages.flatMap((passage) => [...findings(passage)]);
console.log([...lines, `${lines.length} places to look at in ${passages.length} passages.`].join('\n'));
