import { displayWidth, fitToWidth } from './display-text.ts';

/** Rows under names of columns; cells are display text. */
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

/** No column is made narrower than this. */
const LEAST_WIDTH = 8;

/** The table's lines, the header first, none wider than the screen as far as its flexible columns can give way. */
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

/** Takes from the widest flexible column, column by column, until the sum fits. */
function shrink(widths: number[], columns: readonly Column[], available: number): void {
  const flexible = columns.flatMap(({ isFlexible }, i) => (isFlexible ? [i] : []));
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - available; excess > 0; excess -= 1) {
    const widest = flexible.reduce((a, b) => (widths[b]! > widths[a]! ? b : a), flexible[0] ?? 0);
    if (flexible.length === 0 || widths[widest]! <= LEAST_WIDTH) return;
    widths[widest]! -= 1;
  }
}
