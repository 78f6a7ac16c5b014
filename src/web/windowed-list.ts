import { make } from './dom.ts';

/**
 * A list of any length of which only the rows in view are elements. All rows are equally high, by the style `--row`,
 * but for one that may be open and is as high as what it holds.
 */

interface WindowedList<Item extends { id: number }> {
  readonly element: HTMLElement;
  /** Shows these items. `added` of them came in above what was there: what the reader sees stays where it is. */
  show(items: readonly Item[], total: number, added?: number): void;
  /** Draws a row anew. */
  redraw(id: number): void;
  redrawAll(): void;
  /** Opens a row: it becomes as high as its content. */
  open(id: number | undefined): void;
  /** Moves the focus to a row; scrolls it into view. */
  focus(index: number): void;
  /** The index of the row that has the focus; -1 for none. */
  focused(): number;
}

interface Options<Item> {
  label: string;
  draw(item: Item): HTMLElement;
  /** What of a row gets the focus when the list moves it there. */
  focusTarget(row: HTMLElement): HTMLElement | null;
  /** The reader is near the end of what is there. */
  onNearEnd(): void;
}

/** Rows above and below the view that are drawn all the same. */
const MARGIN = 8;

/** So many new rows are drawn in a frame, those in view first, so that no frame takes long, however far a reader jumps. */
const ROWS_A_FRAME = 16;

/** So many rows before the end the next page is read, once the reader scrolls. */
const NEAR_END = 40;

export function windowedList<Item extends { id: number }>({
  label,
  draw,
  focusTarget,
  onNearEnd,
}: Options<Item>): WindowedList<Item> {
  const element = make('ul', { class: 'rows', 'aria-label': label });
  const probe = make('div', { class: 'row-probe', 'aria-hidden': 'true' });
  const frame = make('div', { class: 'rows-frame' }, probe, element);
  const drawn = new Map<number, { item: Item; row: HTMLElement }>();
  let items: readonly Item[] = [];
  let total = 0;
  let rowHeight = 0;
  let openId: number | undefined;
  let openHeight = 0;
  let frameHeight = 0;
  let isPlanned = false;

  const openIndex = () => (openId === undefined ? -1 : items.findIndex(({ id }) => id === openId));
  const extra = () => Math.max(0, openHeight - rowHeight);
  const topOf = (index: number, opened: number) =>
    index * rowHeight + (opened >= 0 && index > opened ? extra() : 0);

  const sizes = new ResizeObserver(() => {
    const height = probe.getBoundingClientRect().height;
    const open = openId === undefined ? undefined : drawn.get(openId)?.row;
    const opened = open?.getBoundingClientRect().height ?? 0;
    if (height === rowHeight && opened === openHeight) return;
    rowHeight = height;
    openHeight = opened;
    render();
  });
  sizes.observe(probe);

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
    // A form in its row stays where it is, with the caret in it.
    if (known && known.row !== row) replaceRow(known.row, row);
    drawn.set(item.id, { item, row });
    return row;
  };

  const replaceRow = (old: HTMLElement, row: HTMLElement) => {
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(row);
    if (hadFocus) focusTarget(row)?.focus({ preventScroll: true });
  };

  /** The indexes in view, and whether the reader has scrolled. Asked before anything is drawn: after it would cost a layout. */
  const inView = (): { first: number; last: number; isScrolled: boolean } => {
    const top = -element.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor((top - extra()) / rowHeight));
    const last = Math.min(items.length - 1, Math.ceil((top + innerHeight) / rowHeight));
    return { first, last, isScrolled: scrollY > 0 };
  };

  /** The indexes that have to be elements: the open one, the one that has the focus, those in view, those around it. */
  const wanted = (opened: number, { first, last }: ReturnType<typeof inView>): number[] => {
    const indexes = new Set([opened, focused()].filter((index) => index >= 0));
    for (let index = first; index <= last; index += 1) indexes.add(index);
    for (let beyond = 1; beyond <= MARGIN; beyond += 1) {
      if (last + beyond < items.length) indexes.add(last + beyond);
      if (first - beyond >= 0) indexes.add(first - beyond);
    }
    return [...indexes];
  };

  /** Those of them that this frame draws, in order; the next frames draw the others. */
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
    resize(items.length * rowHeight + (opened >= 0 ? extra() : 0));
    const view = inView();
    const indexes = chosen(wanted(opened, view));
    const kept = new Set(indexes.map((index) => items[index]!.id));
    // First, so that those that stay are not moved: an element that is moved loses the focus.
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
      render();
      if (added > 0 && isAbove) scrollBy(0, added * rowHeight);
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
      const below = top + rowHeight - innerHeight + 24;
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
