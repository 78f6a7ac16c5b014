import { parseSearch } from '../client/search-text.ts';
import type { Bookmark, Changes, Tag } from '../domain/resources.ts';
import { growTree, type TagNode } from '../formats/tag-tree.ts';
import { iconButton, make, refill } from './dom.ts';
import { notify } from './notices.ts';
import { pathsOf, tagsOf } from './search-text.ts';
import { ask, client, quotaLeft } from './session.ts';
import { createTagCounts } from './tag-counts.ts';
import type { TagsScreen } from './tags-screen.ts';
import { texts } from './texts.ts';

/**
 * One's tags with their counts, beside the list. Each narrows the list down. The tag `a/b` is in a branch below `a`, which is
 * closed at first. A tag with others below it asks for all of them.
 */

interface TagsPanel {
  readonly element: HTMLElement;
  /** One's tags, as they were read last. */
  readonly tags: readonly Tag[];
  /** Shows which tags the search names. */
  mark(searchText: string): void;
  /** Notes the tags of bookmarks that were read, so that later changes of them can be counted. */
  note(bookmarks: readonly Bookmark[]): void;
  /** Applies a page of changes that were made after `sinceMs`; reads the tags again where counts cannot be known. */
  apply(page: Changes, sinceMs: number): void;
  /** Reads the tags, and shows them once `first` has settled. */
  read(first?: Promise<unknown>): Promise<void>;
}

/** More of them nobody reads; the field above finds the others. */
const SHOWN = 300;

const REFRESH_MS = 1_000;

/** While little is left of the quota, counts may be a while behind. */
const REFRESH_LATER_MS = 15_000;

interface Options {
  /** Adds a tag to the search, or takes it out. */
  onToggleTag(name: string): void;
  /** The same for all tags at and below a path. */
  onTogglePath(path: string): void;
  onRename(from: string, to: string): void;
}

export function tagsPanel({ onToggleTag, onTogglePath, onRename }: Options): TagsPanel {
  const counts = createTagCounts();
  let tags: readonly Tag[] = [];
  let readMs = 0;
  let isSought = tagsOf('');
  let isPathSought = pathsOf('');
  let soughtKey = '';
  const open = new Set<string>();
  let screen: TagsScreen | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const list = make('ul', { class: 'tags' });
  const find = make('input', {
    type: 'search',
    'aria-label': texts.tags.find,
    placeholder: texts.tags.find,
    dir: 'auto',
    autocomplete: 'off',
    oninput: () => draw(),
  });
  const openScreen = async () => {
    const { openTagsScreen } = await import('./tags-screen.ts');
    screen = openTagsScreen({
      tags: () => tags,
      read,
      onClose: () => {
        screen = undefined;
      },
    });
  };
  const manage = iconButton(
    'edit',
    texts.tags.manage,
    () => void openScreen().catch(() => notify(texts.errors.unexpected, { kind: 'error' })),
  );
  const element = make(
    'aside',
    { class: 'side', 'aria-label': texts.tags.title },
    make('h2', {}, texts.tags.title, manage),
    find,
    list,
  );

  const draw = () => {
    const sought = find.value.trim().toLowerCase();
    const found = sought === '' ? tags : tags.filter(({ name }) => name.toLowerCase().includes(sought));
    find.hidden = tags.length < 10;
    manage.hidden = tags.length === 0;
    const focused = document.activeElement?.closest<HTMLElement>('.tags button')?.getAttribute('aria-label');
    refill(
      list,
      ...(sought === ''
        ? drawBranch(growTree(tags), { left: SHOWN })
        : found.slice(0, SHOWN).map((tag) => make('li', {}, tagButton(tag.name, tag)))),
    );
    if (tags.length === 0) refill(list, make('li', { class: 'hint' }, texts.tags.none));
    stopAt(list.querySelector('.tag'));
    if (focused != null) list.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    screen?.draw();
  };
  /** One tag is a tab stop. Arrow keys move to the others; right and left open and close what is below one. */
  const buttons = () => [...list.querySelectorAll<HTMLElement>('.tag')];
  const stopAt = (stop: Element | null | undefined) => {
    for (const each of buttons()) each.tabIndex = each === stop ? 0 : -1;
  };
  list.addEventListener('focusin', ({ target }) => {
    if (target instanceof Element && target.matches('.tag')) stopAt(target);
  });
  list.addEventListener('keydown', (event) => {
    const all = buttons();
    const at = all.findIndex((each) => each === document.activeElement);
    if (at < 0) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    const twist = all[at]!.parentElement!.querySelector<HTMLElement>('.twist');
    const toggles = twist?.ariaExpanded === 'true' ? 'ArrowLeft' : 'ArrowRight';
    if (to !== undefined) all[to]?.focus();
    else if (twist && event.key === toggles) twist.click();
    else return;
    event.preventDefault();
  });
  const tagButton = (shown: string, { name, bookmark_count }: Pick<Tag, 'name' | 'bookmark_count'>) =>
    filterButton({
      shown,
      label: texts.tags.count(name, bookmark_count),
      count: bookmark_count,
      isPressed: isSought(name),
      onClick: () => onToggleTag(name),
    });
  /** Draws entries as long as there is room left for them. */
  const drawBranch = (nodes: readonly TagNode[], room: { left: number }): HTMLElement[] =>
    nodes.flatMap(({ name, path, tag, bookmark_count, tags: below }) => {
      if (room.left === 0) return [];
      room.left -= 1;
      if (below.length === 0) return make('li', {}, tagButton(name, { name: path, bookmark_count }));
      const isOpen = open.has(path);
      const twist = make('button', {
        type: 'button',
        class: 'twist',
        tabIndex: -1,
        'aria-expanded': String(isOpen),
        'aria-label': texts.tags.below(path),
        onclick: () => {
          if (!open.delete(path)) open.add(path);
          draw();
        },
      });
      const all = filterButton({
        shown: name,
        label: texts.tags.under(path),
        count: tag === null ? undefined : bookmark_count,
        isPressed: isPathSought(path),
        onClick: () => onTogglePath(path),
      });
      const branch = make('div', { class: 'branch' }, twist, all);
      return make('li', {}, branch, ...(isOpen ? [make('ul', {}, ...drawBranch(below, room))] : []));
    });
  const show = (next: readonly Tag[]) => {
    const names = new Map(tags.map(({ id, name }) => [id, name]));
    tags = next;
    for (const { id, name } of tags) {
      const before = names.get(id) ?? name;
      if (before !== name) onRename(before, name);
    }
    draw();
  };
  const read = async (first?: Promise<unknown>) => {
    clearTimeout(timer);
    const found = await ask(() => client.listTags());
    readMs = Date.now();
    await first;
    show(found.tags);
  };
  /** Many changes in a row cost one request. Counts that could not be read stay as they were until the next change. */
  const refreshSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void read().catch(() => {}), quotaLeft() > 30 ? REFRESH_MS : REFRESH_LATER_MS);
  };
  return {
    element,
    get tags() {
      return tags;
    },
    mark(text) {
      // While one types words, which is nearly always, nothing here changes.
      const key = JSON.stringify([parseSearch(text).search.tags, parseSearch(text).search.tag_under]);
      if (key === soughtKey) return;
      soughtKey = key;
      isSought = tagsOf(text);
      isPathSought = pathsOf(text);
      if (tags.length > 0) draw();
    },
    note: counts.note,
    apply(page, sinceMs) {
      const next = counts.apply(tags, page);
      if (next.tags !== tags) show(next.tags);
      if (!next.isSure || (sinceMs < readMs && page.bookmarks.length + page.deleted.length > 0))
        refreshSoon();
    },
    read,
  };
}

interface Filter {
  shown: string;
  label: string;
  /** undefined: none is shown. */
  count: number | undefined;
  isPressed: boolean;
  onClick(): void;
}

function filterButton({ shown, label, count, isPressed, onClick }: Filter): HTMLElement {
  const attributes = {
    type: 'button',
    class: 'tag',
    'aria-pressed': isPressed ? 'true' : 'false',
    'aria-label': label,
    onclick: onClick,
  };
  // The style shows the count: as text it would stand in the button beside the label that says it in words.
  return make(
    'button',
    attributes,
    make('span', { class: 'name', dir: 'auto' }, shown),
    ...(count === undefined ? [] : [make('span', { class: 'count', 'data-count': texts.number(count) })]),
  );
}
