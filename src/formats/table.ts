/**
 * Parses tables whose rows are lines: CSV and its relatives. Takes what spreadsheets and programs write: any line
 * ending, also mixed ones, and quotes that do not follow RFC 4180.
 */

type Separator = ',' | ';' | '\t' | '|';

/** Matches a cell without quotes, for each separator. */
const UNQUOTED: Readonly<Record<Separator, RegExp>> = {
  ',': /[^,\r\n]*/y,
  ';': /[^;\r\n]*/y,
  '\t': /[^\t\r\n]*/y,
  '|': /[^|\r\n]*/y,
};

/** The separators that a header can have without a line such as `sep=|`. */
const USUAL_SEPARATORS: readonly Separator[] = [',', ';', '\t'];

/** Matches the line `sep=;`, by which a file tells a spreadsheet its separator. */
const SEPARATOR_LINE = /^\s*"?sep=(?<separator>[,;\t|])"?[ \t]*(?:\r\n?|\n)/i;

/**
 * Reads the cells from `start` to the end of the row. `end` is the index of the next row. A quote that opens a cell
 * must be closed before a separator or a line break. Otherwise the quote is part of the text: it does not hide the
 * following rows.
 */
function readRow(text: string, start: number, separator: Separator): { cells: string[]; end: number } {
  const cells: string[] = [];
  const unquoted = UNQUOTED[separator];
  let index = start;
  for (;;) {
    const quoted = text[index] === '"' ? readQuoted(text, index, separator) : undefined;
    if (quoted === undefined) {
      unquoted.lastIndex = index;
      const [cell = ''] = unquoted.exec(text) ?? [];
      cells.push(cell.trim());
      index += cell.length;
    } else {
      cells.push(quoted.cell.trim());
      index = quoted.end;
    }
    if (text[index] !== separator) break;
    index += 1;
  }
  const lineBreak = text.startsWith('\r\n', index) ? 2 : 1;
  return { cells, end: index + lineBreak };
}

/** Matches a quoted cell without its first quote. */
const QUOTED = /(?<content>[^"]*(?:""[^"]*)*)"(?<after>[ \t]*)/y;

function readQuoted(
  text: string,
  start: number,
  separator: Separator,
): { cell: string; end: number } | undefined {
  QUOTED.lastIndex = start + 1;
  const { content, after = '' } = QUOTED.exec(text)?.groups ?? {};
  if (content === undefined) return undefined;
  // With tabs as separators, the white space after the quote may contain the separator.
  const end = separator === '\t' ? QUOTED.lastIndex - after.length : QUOTED.lastIndex;
  const next = text[end];
  const isClosed = next === undefined || next === separator || next === '\r' || next === '\n';
  return isClosed ? { cell: content.replaceAll('""', '"'), end } : undefined;
}

/** Yields the rows of a table, without empty lines. Cells are trimmed. */
export function* readRows(text: string, separator: Separator): Generator<string[]> {
  for (let index = 0; index < text.length; ) {
    const { cells, end } = readRow(text, index, separator);
    if (cells.some(Boolean)) yield cells;
    index = end;
  }
}

/** A table whose first row names the columns. */
export interface Table {
  /** In lower case. */
  columns: string[];
  separator: Separator;
  /** The text of the whole table, from the row with the names. */
  text: string;
}

/**
 * Finds the separator of a table, and the names of its columns. A first line such as `sep=;` names the separator.
 * Otherwise it is the one that splits the first row into the most cells. In some countries, spreadsheets write
 * semicolons.
 */
export function openTable(file: string): Table {
  const separatorLine = SEPARATOR_LINE.exec(file);
  const text = file.slice(separatorLine?.[0].length ?? 0).replace(/^[\r\n]+/, '');
  const named = separatorLine?.groups?.separator as Separator | undefined;
  const separators = named === undefined ? USUAL_SEPARATORS : [named];
  const heads = separators.map((separator) => ({
    separator,
    columns: readRow(text, 0, separator).cells.map((name) => name.toLowerCase()),
  }));
  const { separator, columns } = heads.reduce((most, next) =>
    next.columns.length > most.columns.length ? next : most,
  );
  return { separator, columns, text };
}
