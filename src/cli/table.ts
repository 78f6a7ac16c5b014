import { displayWidth, fitToWidth } from './display-text.ts';

/** Rows below a header of column names. The cells must be safe to print, as `toLine` makes them. */
export interface Table {
  columns: readonly Column[];
  rows: readonly (readonly string[])[];
}

interface Column {
  name: string;
  /** Whether the cells of the column may be cut if the table is wider than the screen. */
  isFlexible?: boolean;
  /** Whether the other flexible columns are cut before this one. */
  isMain?: boolean;
}

const GAP = '  ';

/** No column is cut below this width. */
const MIN_WIDTH = 8;

/** The flexible columns other than the main column are cut to this width before the main column is cut. */
const MIN_OTHER_WIDTH = 16;

/** Formats the lines of a table, header first. Cuts flexible columns if the lines are longer than `screenWidth`. */
export function displayTable({ columns, rows }: Table, screenWidth: number): string[] {
  const header = columns.map(({ name }) => name);
  const lines = [header, ...rows];
  const widths = fitWidths(
    columns.map((column, i) => ({
      ...column,
      width: Math.max(...lines.map((row) => displayWidth(row[i] ?? ''))),
    })),
    screenWidth - GAP.length * (columns.length - 1),
  );
  return lines.map((row) =>
    widths
      .map((width, i) => fitToWidth(row[i] ?? '', width))
      .join(GAP)
      .trimEnd(),
  );
}

/** Returns the width of each column. Narrows flexible columns until the table fits, the main column only if needed. */
function fitWidths(columns: (Column & { width: number })[], available: number): number[] {
  let excess = columns.reduce((sum, { width }) => sum + width, 0) - available;
  // Narrows the widest of the given columns by 1, and repeats this until the table fits or none of these columns is
  // wider than `minWidth`.
  const narrow = (narrowable: { width: number }[], minWidth: number) => {
    for (; excess > 0; excess -= 1) {
      const [widest] = narrowable.toSorted((a, b) => b.width - a.width);
      if (widest === undefined || widest.width <= minWidth) return;
      widest.width -= 1;
    }
  };
  const flexible = columns.filter(({ isFlexible }) => isFlexible);
  narrow(
    flexible.filter(({ isMain }) => !isMain),
    MIN_OTHER_WIDTH,
  );
  narrow(flexible, MIN_WIDTH);
  return columns.map(({ width }) => width);
}
