import type { Bookmark, Changes, Tag } from '../domain/resources.ts';
import { iconButton, make, refill } from './dom.ts';
import { notify } from './notices.ts';
import { tagsOf } from './search-text.ts';
import { ask, client, quotaLeft } from './session.ts';
import { createTagCounts } from './tag-counts.ts';
import type { TagsScreen } from './tags-screen.ts';
import { texts } from './texts.ts';

/** One's tags with their counts, beside the list. Each narrows the list down. */

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

/** `onToggle` is called with the tag that the search shall name, or name no longer. */
export function tagsPanel(onToggle: (name: string) => void): TagsPanel {
  const counts = createTagCounts();
  let tags: readonly Tag[] = [];
  let readMs = 0;
  let isSought = tagsOf('');
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
    refill(list, ...found.slice(0, SHOWN).map((tag) => filterEntry(tag, isSought(tag.name), onToggle)));
    if (tags.length === 0) refill(list, make('li', { class: 'hint' }, texts.tags.none));
    if (focused != null) list.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    screen?.draw();
  };
  const read = async (first?: Promise<unknown>) => {
    clearTimeout(timer);
    const found = await ask(() => client.listTags());
    readMs = Date.now();
    await first;
    tags = found.tags;
    draw();
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
      const before = tags.filter(({ name }) => isSought(name));
      isSought = tagsOf(text);
      const after = tags.filter(({ name }) => isSought(name));
      if (before.length !== after.length || before.some((tag, at) => tag !== after[at])) draw();
    },
    note: counts.note,
    apply(page, sinceMs) {
      const next = counts.apply(tags, page);
      if (next.tags !== tags) {
        tags = next.tags;
        draw();
      }
      if (!next.isSure || (sinceMs < readMs && page.bookmarks.length + page.deleted.length > 0))
        refreshSoon();
    },
    read,
  };
}

function filterEntry(
  { name, bookmark_count }: Tag,
  isPressed: boolean,
  onToggle: (name: string) => void,
): HTMLElement {
  const attributes = {
    type: 'button',
    class: 'tag',
    'aria-pressed': isPressed ? 'true' : 'false',
    'aria-label': texts.tags.count(name, bookmark_count),
    onclick: () => onToggle(name),
  };
  // The style shows it: as text it would stand in the button beside the label that says it in words.
  const count = make('span', { class: 'count', 'data-count': texts.number(bookmark_count) });
  return make(
    'li',
    {},
    make('button', attributes, make('span', { class: 'name', dir: 'auto' }, name), count),
  );
}
