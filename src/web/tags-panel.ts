import { parseSearch } from '../client/search-text.ts';
import type { Bookmark, Changes, Tag } from '../domain/resources.ts';
import { showTag } from '../formats/folders.ts';
import { countBelow, growTree, type TagNode } from '../formats/tag-tree.ts';
import { button, iconButton, make, redrawList, refill, searchField } from './dom.ts';
import { notifyError } from './notices.ts';
import { pathsOf, tagsOf } from './search-text.ts';
import { ask, client, delayMs } from './session.ts';
import { createTagCounts } from './tag-counts.ts';
import type { TagsScreen } from './tags-screen.ts';
import { texts } from './texts.ts';

/**
 * The list of the user's tags with their counts, next to the bookmarks. Selecting a tag filters the bookmarks. The tag
 * `a/b` appears in a branch below `a`. Branches are closed at first. Selecting a branch finds the bookmarks that have
 * any tag of that branch.
 */

interface TagsPanel {
  readonly element: HTMLElement;
  /** The user's tags, as they were last read. */
  readonly tags: readonly Tag[];
  /** Highlights the tags that the search text contains. */
  mark(searchText: string): void;
  /** Remembers the tags of bookmarks that were read, so that later changes can be counted. */
  note(bookmarks: readonly Bookmark[]): void;
  /** Forgets the bookmarks. Call it if changes were skipped, and then `read`. */
  forget(): void;
  /**
   * Applies a page of changes that were made after `sinceMs`. Reads the tags again if the page does not determine the
   * counts.
   */
  apply(page: Changes, sinceMs: number): void;
  /** Reads the tags. Shows them after `first` has resolved. */
  read(first?: Promise<unknown>): Promise<void>;
}

/** How many tags to show at first. A button below the list shows as many more. */
const SHOWN = 300;

const REFRESH_MS = 1_000;

interface Options {
  /** Adds a tag to the search or removes it. */
  onToggleTag(name: string): void;
  /** Adds the filter `under:` with this path to the search. If the search already contains that filter, removes it. */
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
  let room = SHOWN;
  let screen: TagsScreen | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const list = make('ul', { class: 'tags' });
  const find = searchField(texts.tags.find, () => draw());
  const rest = make('div', { class: 'rest' });
  const more = button(texts.list.more, () => {
    room += SHOWN;
    draw();
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
  const manage = iconButton('edit', texts.tags.manage, () => void openScreen().catch(notifyError));
  const element = make(
    'aside',
    { class: 'side', 'aria-label': texts.tags.title },
    make('div', { class: 'side-head' }, make('h2', {}, texts.tags.title), manage),
    find,
    list,
    rest,
  );

  const draw = () => {
    const sought = find.value.trim().toLowerCase();
    const found = tags.filter(({ name }) => name.toLowerCase().includes(sought));
    const nodes = sought === '' ? growTree(tags) : found.map(nodeOf);
    find.hidden = tags.length < 10;
    manage.hidden = tags.length === 0;
    const count = countNodes(nodes);
    redrawList(list, ...drawNodes(nodes, { left: room }));
    if (count > room) refill(rest, make('p', { class: 'hint' }, texts.tags.shown(room, count)), more);
    else refill(rest);
    if (tags.length === 0) list.append(make('li', { class: 'hint' }, texts.tags.none));
    if (list.querySelector('.tag[tabindex="0"]') === null) stopAt(buttons()[0]);
    screen?.draw();
  };
  /**
   * Only one tag is a tab stop. The up and down arrows move to the other tags. The left and right arrows close and open
   * a branch.
   */
  const buttons = () => [...list.querySelectorAll<HTMLElement>('.tag')];
  const stopAt = (stop: Element | undefined) => {
    for (const each of buttons()) each.tabIndex = each === stop ? 0 : -1;
  };
  list.addEventListener('focusin', ({ target }) => {
    if (target instanceof Element && target.matches('.tag')) stopAt(target);
  });
  list.addEventListener('keydown', (event) => {
    const all = buttons();
    const at = all.findIndex((each) => each.matches(':focus'));
    if (at < 0) return;
    const newIndex = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    // The button that opens and closes the branch of the focused tag.
    const twist = list.querySelector<HTMLElement>('.twist:has(+ :focus)');
    const toggleKey = twist?.ariaExpanded === 'true' ? 'ArrowLeft' : 'ArrowRight';
    if (newIndex !== undefined) all[newIndex]?.focus();
    else if (twist && event.key === toggleKey) twist.click();
    else return;
    event.preventDefault();
  });
  const countNodes = (nodes: readonly TagNode[]): number =>
    nodes.reduce((sum, { path, tags: below }) => sum + 1 + (open.has(path) ? countNodes(below) : 0), 0);
  /** Draws `nodes`, and the child nodes below each open node. Stops after `room.left` nodes. */
  const drawNodes = (nodes: readonly TagNode[], room: { left: number }): HTMLElement[] =>
    nodes.flatMap((node) => {
      const { name, path, tags: below } = node;
      if (room.left === 0) return [];
      room.left -= 1;
      const isBranch = below.length > 0;
      const shownPath = showTag(path);
      const count = countBelow(node);
      const filter = make(
        'button',
        {
          type: 'button',
          class: 'tag',
          tabindex: -1,
          'aria-pressed': String(isBranch ? isPathSought(path) : isSought(path)),
          'aria-label': isBranch ? texts.tags.under(shownPath, count) : texts.tags.count(shownPath, count),
          title: shownPath,
          onclick: () => (isBranch ? onTogglePath(path) : onToggleTag(path)),
        },
        make('span', { class: 'name', dir: 'auto' }, name),
        // The style sheet shows the count. The count is not text, because the label already contains it.
        make('span', { class: 'count', 'data-count': texts.number(count) }),
      );
      if (!isBranch) return make('li', {}, filter);
      const isOpen = open.has(path);
      const twist = make('button', {
        type: 'button',
        class: 'twist',
        tabindex: -1,
        'aria-expanded': String(isOpen),
        'aria-label': texts.tags.below(shownPath),
        onclick: () => {
          if (!open.delete(path)) open.add(path);
          draw();
        },
      });
      return make(
        'li',
        {},
        make('div', { class: 'branch' }, twist, filter),
        isOpen && make('ul', {}, ...drawNodes(below, room)),
      );
    });
  const show = (next: readonly Tag[]) => {
    const oldNames = new Map(tags.map(({ id, name }) => [id, name]));
    tags = next;
    for (const { id, name } of tags) {
      const oldName = oldNames.get(id) ?? name;
      if (oldName !== name) onRename(oldName, name);
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
  /** Combines many changes into one request. If the request fails, the counts stay the same until the next change. */
  const refreshSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void read().catch(() => {}), delayMs(REFRESH_MS));
  };
  return {
    element,
    get tags() {
      return tags;
    },
    mark(text) {
      // Only the tags and the paths in the search text change what the panel shows.
      const key = JSON.stringify([parseSearch(text).search.tags, parseSearch(text).search.tag_under]);
      if (key === soughtKey) return;
      soughtKey = key;
      isSought = tagsOf(text);
      isPathSought = pathsOf(text);
      if (tags.length > 0) draw();
    },
    note: counts.note,
    forget: counts.forget,
    apply(page, sinceMs) {
      const next = counts.apply(tags, page);
      if (next.tags !== tags) show(next.tags);
      if (!next.isSure || (sinceMs < readMs && page.bookmarks.length + page.deleted.length > 0))
        refreshSoon();
    },
    read,
  };
}

const nodeOf = ({ name, bookmark_count }: Tag): TagNode => ({
  name: showTag(name),
  path: name,
  tag: name,
  bookmark_count,
  tags: [],
});
