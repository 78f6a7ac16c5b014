import { displayWidth, fitToWidth } from './display-text.ts';

/** Rows below the names of columns. Cells are display text. */
export interface Table {
  columns: readonly Column[];
  rows: readonly (readonly string[])[];
}

export interface Column {
  name: string;
  /** May be cut where the screen is too narrow. */
  isFlexible?: boolean;
}

const GAP = '  ';

/** The smallest width to which a column is cut. */
const MIN_WIDTH = 8;

/**
 * The lines of the table, the header first. No line is wider than the screen, as far as flexible columns can be cut.
 */
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

/** Cuts the widest flexible column, one terminal column at a time, until everything fits. */
function shrink(widths: number[], columns: readonly Column[], available: number): void {
  const flexible = columns.flatMap(({ isFlexible }, i) => (isFlexible ? [i] : []));
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - available; excess > 0; excess -= 1) {
    const widest = flexible.reduce((a, b) => (widths[b]! > widths[a]! ? b : a), flexible[0] ?? 0);
    if (flexible.length === 0 || widths[widest]! <= MIN_WIDTH) return;
    widths[widest]! -= 1;
  }
}
