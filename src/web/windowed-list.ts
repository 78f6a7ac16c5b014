import { make } from './dom.ts';

/**
 * A list of any length that creates elements only for the rows in view. A row has one of two heights, `--row` or
 * `--row-low` in the style sheet. One row may be open: it is as high as its content.
 */

interface WindowedList<Item extends { id: number }> {
  readonly element: HTMLElement;
  /** Shows these items. The first `added` of them are new: what the reader sees stays in place. */
  show(items: readonly Item[], total: number, added?: number): void;
  /** Draws a row again. */
  redraw(id: number): void;
  redrawAll(): void;
  /** Opens a row and closes the one that was open. */
  open(id: number | undefined): void;
  /** Moves the focus to a row; scrolls it into view. */
  focus(index: number): void;
  /** The index of the row that has the focus; -1 for none. */
  focused(): number;
}

interface Options<Item> {
  label: string;
  draw(item: Item): HTMLElement;
  /** Whether the row of this item has the height `--row-low`. */
  isLow(item: Item): boolean;
  /** The element of a row that gets the focus. */
  focusTarget(row: HTMLElement): HTMLElement | null;
  /** Called when the reader is near the end of the items. */
  onNearEnd(): void;
}

/** Rows to draw above and below the view. */
const MARGIN = 8;

/** New rows to draw in one frame, those in view first, so that no frame takes long. */
const ROWS_A_FRAME = 16;

/** Rows before the end at which the next page is read, once the reader has scrolled. */
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
  const drawn = new Map<number, { item: Item; row: HTMLElement }>();
  let items: readonly Item[] = [];
  let total = 0;
  let rowHeight = 0;
  let lowHeight = 0;
  /** Where each row begins while none is open, in pixels, and where the last one ends. */
  let tops: readonly number[] = [0];
  let openId: number | undefined;
  let openHeight = 0;
  let frameHeight = 0;
  let isPlanned = false;

  const openIndex = () => (openId === undefined ? -1 : items.findIndex(({ id }) => id === openId));
  const heightOf = (index: number) => tops[index + 1]! - tops[index]!;
  /** What the open row is higher than when it is closed. */
  const extra = (opened: number) => (opened < 0 ? 0 : Math.max(0, openHeight - heightOf(opened)));
  const topOf = (index: number, opened: number) => tops[index]! + (index > opened ? extra(opened) : 0);
  const measure = () => {
    let top = 0;
    tops = [0, ...items.map((item) => (top += isLow(item) ? lowHeight : rowHeight))];
  };

  /** The last row that begins at or above this place, if none is open. */
  const rowAt = (place: number): number => {
    let [from, until] = [0, items.length - 1];
    while (from < until) {
      const middle = Math.ceil((from + until) / 2);
      if (tops[middle]! <= place) from = middle;
      else until = middle - 1;
    }
    return from;
  };

  const sizes = new ResizeObserver(() => {
    const height = probe.getBoundingClientRect().height;
    const low = lowProbe.getBoundingClientRect().height;
    const open = openId === undefined ? undefined : drawn.get(openId)?.row;
    const opened = open?.getBoundingClientRect().height ?? 0;
    if (height === rowHeight && low === lowHeight && opened === openHeight) return;
    rowHeight = height;
    lowHeight = low;
    openHeight = opened;
    measure();
    render();
  });
  sizes.observe(probe);
  sizes.observe(lowProbe);

  const plan = () => {
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
    if (item.id === openId) row.classList.add('open');
    // An open form is the same element as before: replacing it would lose the caret.
    if (known && known.row !== row) replaceRow(known.row, row);
    drawn.set(item.id, { item, row });
    return row;
  };

  const replaceRow = (old: HTMLElement, row: HTMLElement) => {
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(row);
    if (hadFocus) focusTarget(row)?.focus({ preventScroll: true });
  };

  /** The indexes in view, and whether the reader has scrolled. Called before drawing, because it would force a layout after. */
  const inView = (opened: number): { first: number; last: number; isScrolled: boolean } => {
    const top = -element.getBoundingClientRect().top;
    const first = rowAt(top - extra(opened));
    const last = Math.min(items.length - 1, rowAt(top + innerHeight) + 1);
    return { first, last, isScrolled: scrollY > 0 };
  };

  /** The indexes that need an element: the open row, the focused row, the rows in view and those around them. */
  const wanted = (opened: number, { first, last }: ReturnType<typeof inView>): number[] => {
    const indexes = new Set([opened, focused()].filter((index) => index >= 0));
    for (let index = first; index <= last; index += 1) indexes.add(index);
    for (let beyond = 1; beyond <= MARGIN; beyond += 1) {
      if (last + beyond < items.length) indexes.add(last + beyond);
      if (first - beyond >= 0) indexes.add(first - beyond);
    }
    return [...indexes];
  };

  /** The indexes that this frame draws, in order. The next frames draw the others. */
  const chosen = (indexes: readonly number[]): number[] => {
    let left = ROWS_A_FRAME;
    const now = indexes.filter((index) => drawn.has(items[index]!.id) || left-- > 0);
    if (now.length < indexes.length) plan();
    return now.sort((one, other) => one - other);
  };

  const resize = (height: number) => {
    if (height === frameHeight) return;
    frameHeight = height;
    element.style.height = `${height}px`;
  };

  const render = () => {
    if (rowHeight === 0) return;
    const opened = openIndex();
    resize(tops[items.length]! + extra(opened));
    const view = inView(opened);
    const indexes = chosen(wanted(opened, view));
    const kept = new Set(indexes.map((index) => items[index]!.id));
    // Removes rows before it inserts others: an element that is moved loses the focus.
    for (const [id, { row }] of drawn) {
      if (kept.has(id)) continue;
      row.remove();
      drawn.delete(id);
    }
    let previous: Element | undefined;
    for (const index of indexes) {
      const row = rowOf(items[index]!);
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

  addEventListener('scroll', plan, { passive: true });
  addEventListener('resize', plan);

  return {
    element: frame,
    show(newItems, newTotal, added = 0) {
      const isAbove = element.getBoundingClientRect().top < 0;
      items = newItems;
      total = newTotal;
      measure();
      render();
      if (added > 0 && isAbove) scrollBy(0, tops[added]!);
    },
    redraw(id) {
      const known = drawn.get(id);
      if (known) known.item = undefined as never;
      render();
    },
    redrawAll() {
      for (const known of drawn.values()) known.item = undefined as never;
      render();
    },
    open(id) {
      const before = openId;
      openId = id;
      openHeight = 0;
      for (const each of [before, id]) {
        const known = each === undefined ? undefined : drawn.get(each);
        if (known) known.item = undefined as never;
      }
      render();
      const row = id === undefined ? undefined : drawn.get(id)?.row;
      if (before !== undefined && before !== id) {
        const old = drawn.get(before)?.row;
        if (old) sizes.unobserve(old);
      }
      if (row) {
        openHeight = row.getBoundingClientRect().height;
        sizes.observe(row);
        render();
      }
    },
    focus(index) {
      const item = items[index];
      if (item === undefined) return;
      const top = element.getBoundingClientRect().top + topOf(index, openIndex());
      const below = top + heightOf(index) - innerHeight + 24;
      const header = 80;
      if (top < header) scrollBy(0, top - header);
      else if (below > 0) scrollBy(0, below);
      render();
      const row = drawn.get(item.id)?.row;
      if (row) focusTarget(row)?.focus({ preventScroll: true });
      render();
    },
    focused,
  };
}
