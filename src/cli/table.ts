import { displayWidth, fitToWidth } from './display-text.ts';

/** Rows below a header of column names. Cells are display text. */
export interface Table {
  columns: readonly Column[];
  rows: readonly (readonly string[])[];
}

interface Column {
  name: string;
  /** Cut if the table is wider than the screen. */
  isFlexible?: boolean;
  /** Cut only after the other flexible columns have shrunk. */
  isMain?: boolean;
}

const GAP = '  ';

/** No column is cut below this width. */
const MIN_WIDTH = 8;

/** The other flexible columns shrink to this width before the main one is cut. */
const MIN_OTHER_WIDTH = 16;

/** Formats the lines of a table, header first. Flexible columns are cut so that lines fit the screen. */
export function displayTable({ columns, rows }: Table, screenWidth: number): string[] {
  const header = columns.map(({ name }) => name);
  const widths = columns.map((_, i) =>
    Math.max(...[header, ...rows].map((row) => displayWidth(row[i] ?? ''))),
  );
  shrink(widths, columns, screenWidth - GAP.length * (columns.length - 1));
  return [header, ...rows].map((row) =>
    row
      .map((cell, i) => fitToWidth(cell, widths[i]!))
      .join(GAP)
      .trimEnd(),
  );
}

/** Cuts the widest flexible columns until the table fits. */
function shrink(widths: number[], columns: readonly Column[], available: number): void {
  const flexible = columns.flatMap(({ isFlexible }, i) => (isFlexible ? [i] : []));
  const others = flexible.filter((i) => !columns[i]!.isMain);
  const excess = () => widths.reduce((sum, width) => sum + width, 0) - available;
  cutWidest(widths, others, excess(), MIN_OTHER_WIDTH);
  cutWidest(widths, flexible, excess(), MIN_WIDTH);
}

function cutWidest(widths: number[], flexible: readonly number[], columns: number, minWidth: number): void {
  for (let excess = columns; excess > 0; excess -= 1) {
    const widest = flexible.reduce((a, b) => (widths[b]! > widths[a]! ? b : a), flexible[0] ?? 0);
    if (flexible.length === 0 || widths[widest]! <= minWidth) return;
    widths[widest]! -= 1;
  }
}
