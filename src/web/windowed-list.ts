import { make } from './dom.ts';

/**
 * A list of any length that creates elements only for the visible rows. A row has one of two heights, `--row` or
 * `--row-low` in the style sheet. One row may be open: it is as high as its content.
 */

interface WindowedList<Item extends { id: number }> {
  readonly element: HTMLElement;
  /** Shows these items. The first `added` of them are new. The rows that the user sees stay in place. */
  show(items: readonly Item[], total: number, added?: number): void;
  redrawAll(): void;
  /** Closes the open row. Then opens the row of the item with this id, if any. */
  open(id: number | undefined): void;
  /** Moves the focus to a row and scrolls it into view. */
  focus(index: number): void;
  /** Returns the index of the row that has the focus, or -1 if none has it. */
  focused(): number;
}

interface Options<Item> {
  label: string;
  draw(item: Item): HTMLElement;
  /** Whether the row of this item has the height `--row-low`. */
  isLow(item: Item): boolean;
  /** Returns the element in `row` that gets the focus. */
  focusTarget(row: HTMLElement): HTMLElement | null;
  /** Called when the user is near the end of the items. */
  onNearEnd(): void;
}

/** How many rows to draw above the visible rows, and how many below them. */
const MARGIN = 8;

/** A frame draws at most this many new rows, so that no frame takes long. The visible rows are drawn first. */
const ROWS_A_FRAME = 16;

/** After the user has scrolled, the next page is read when at most this many rows are left below the visible ones. */
const NEAR_END = 40;

export function windowedList<Item extends { id: number }>({
  label,
  draw,
  isLow,
  focusTarget,
  onNearEnd,
}: Options<Item>): WindowedList<Item> {
  const element = make('ul', { class: 'rows', 'aria-label': label });
  const probe = make('div', { class: 'row-probe', 'aria-hidden': 'true' });
  const lowProbe = make('div', { class: 'row-probe low', 'aria-hidden': 'true' });
  const frame = make('div', { class: 'rows-frame' }, probe, lowProbe, element);
  /**
   * The rows that have elements. The key is the id of the row's item. If `item` is undefined, the row is drawn again.
   */
  const drawn = new Map<number, { item: Item | undefined; row: HTMLElement }>();
  let items: readonly Item[] = [];
  let total = 0;
  let rowHeight = 0;
  let lowHeight = 0;
  /** The top of each row and then the bottom of the last row, in pixels, as if no row were open. */
  let tops: readonly number[] = [0];
  let openId: number | undefined;
  let openHeight = 0;
  let isPlanned = false;

  const openIndex = () => (openId === undefined ? -1 : items.findIndex(({ id }) => id === openId));
  const closedTop = (index: number) => tops[index] ?? 0;
  /** Returns how much higher the open row is than a closed one. `opened` is the index of the open row, or -1. */
  const extraHeight = (opened: number) =>
    opened < 0 ? 0 : Math.max(0, openHeight - closedTop(opened + 1) + closedTop(opened));
  const topOf = (index: number, opened: number) =>
    closedTop(index) + (index > opened ? extraHeight(opened) : 0);
  const measureRows = () => {
    let top = 0;
    tops = [0, ...items.map((item) => (top += isLow(item) ? lowHeight : rowHeight))];
  };

  /** Returns the index of the last row that would begin at or above this position if no row were open. */
  const rowAt = (position: number): number =>
    Math.max(
      0,
      tops.findLastIndex((top) => top <= position),
    );

  const sizes = new ResizeObserver(() => {
    const openRow = openId === undefined ? undefined : drawn.get(openId)?.row;
    const newRowHeight = probe.getBoundingClientRect().height;
    const newLowHeight = lowProbe.getBoundingClientRect().height;
    const newOpenHeight = openRow?.getBoundingClientRect().height ?? 0;
    if (newRowHeight === rowHeight && newLowHeight === lowHeight && newOpenHeight === openHeight) return;
    rowHeight = newRowHeight;
    lowHeight = newLowHeight;
    openHeight = newOpenHeight;
    measureRows();
    render();
  });
  sizes.observe(probe);
  sizes.observe(lowProbe);

  const planFrame = () => {
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => {
      isPlanned = false;
      render();
    });
  };

  const rowOf = (item: Item): HTMLElement => {
    const known = drawn.get(item.id);
    if (known?.item === item) return known.row;
    const row = draw(item);
    row.dataset.id = String(item.id);
    // The row with the open form is the same element as before, and stays in place. Replacing it would lose the caret.
    if (known && known.row !== row) replaceRow(known.row, row);
    drawn.set(item.id, { item, row });
    return row;
  };

  const replaceRow = (old: HTMLElement, row: HTMLElement) => {
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(row);
    if (hadFocus) focusTarget(row)?.focus({ preventScroll: true });
  };

  /**
   * Returns the indexes of the first and the last visible row, and whether the user has scrolled. Call it before
   * anything is drawn. A later call would force another layout.
   */
  const findVisible = (opened: number): { first: number; last: number; isScrolled: boolean } => {
    const top = -element.getBoundingClientRect().top;
    const first = Math.min(items.length - 1, rowAt(top - extraHeight(opened)));
    const last = Math.min(items.length - 1, rowAt(top + innerHeight) + 1);
    return { first, last, isScrolled: scrollY > 0 };
  };

  /**
   * Returns the indexes of the rows that need an element, the most urgent first: `others`, then the visible rows, then
   * the rows around the visible ones.
   */
  const listWanted = ({ first, last }: ReturnType<typeof findVisible>, ...others: number[]): Set<number> => {
    const indexes = new Set(others);
    for (let index = first; index <= last; index += 1) indexes.add(index);
    for (let beyond = 1; beyond <= MARGIN; beyond += 1) indexes.add(last + beyond).add(first - beyond);
    return indexes;
  };

  /** Returns the items that this frame draws, in the order of the list. The next frames draw the other items. */
  const chooseRows = (indexes: Iterable<number>): [index: number, item: Item][] => {
    let newRowsLeft = ROWS_A_FRAME;
    const now: [number, Item][] = [];
    for (const index of indexes) {
      const item = items[index];
      if (item === undefined) continue;
      const isNew = !drawn.has(item.id);
      if (isNew && newRowsLeft === 0) {
        planFrame();
        continue;
      }
      if (isNew) newRowsLeft -= 1;
      now.push([index, item]);
    }
    return now.sort(([one], [other]) => one - other);
  };

  /** Draws the rows that need an element. The row with the index `also` is drawn even if it is not visible. */
  const render = (also = -1) => {
    if (rowHeight === 0) return;
    const opened = openIndex();
    element.style.height = `${topOf(items.length, opened)}px`;
    const view = findVisible(opened);
    const rows = chooseRows(listWanted(view, opened, focused(), also));
    const kept = new Set(rows.map(([, { id }]) => id));
    // Old rows are removed before new ones are inserted, so that no other row has to move. A moved element would lose
    // the focus.
    for (const [id, { row }] of drawn) {
      if (kept.has(id)) continue;
      row.remove();
      drawn.delete(id);
    }
    let previous: Element | undefined;
    for (const [index, item] of rows) {
      const row = rowOf(item);
      const next: Element | null = previous ? previous.nextElementSibling : element.firstElementChild;
      if (row !== next) element.insertBefore(row, next);
      place(row, index, opened);
      previous = row;
    }
    const ahead = view.isScrolled ? NEAR_END : MARGIN;
    if (items.length > 0 && view.last + ahead >= items.length) onNearEnd();
  };

  const place = (row: HTMLElement, index: number, opened: number) => {
    row.style.translate = `0 ${topOf(index, opened)}px`;
    row.setAttribute('aria-posinset', String(index + 1));
    row.setAttribute('aria-setsize', String(total));
  };

  const focused = (): number => {
    const row = document.activeElement?.closest<HTMLElement>('.rows > li');
    if (!row || !element.contains(row)) return -1;
    return items.findIndex(({ id }) => String(id) === row.dataset.id);
  };

  addEventListener('scroll', planFrame, { passive: true });
  addEventListener('resize', planFrame);

  return {
    element: frame,
    show(newItems, newTotal, added = 0) {
      const isAbove = element.getBoundingClientRect().top < 0;
      items = newItems;
      total = newTotal;
      measureRows();
      render();
      if (added > 0 && isAbove) scrollBy(0, closedTop(added));
    },
    redrawAll() {
      for (const known of drawn.values()) known.item = undefined;
      render();
    },
    open(id) {
      for (const each of [openId, id]) {
        const known = each === undefined ? undefined : drawn.get(each);
        if (known) known.item = undefined;
      }
      openId = id;
      openHeight = 0;
      render();
      const row = id === undefined ? undefined : drawn.get(id)?.row;
      if (row) sizes.observe(row);
    },
    focus(index) {
      render(index);
      const item = items[index];
      const row = item && drawn.get(item.id)?.row;
      if (!row) return;
      focusTarget(row)?.focus({ preventScroll: true });
      row.scrollIntoView({ block: 'nearest' });
    },
    focused,
  };
}
