import type { Tag } from '../domain/resources.ts';
import { button, make, refill } from './dom.ts';
import { hasTag } from './search-text.ts';
import { ask, client, quotaLeft } from './session.ts';
import { texts } from './texts.ts';

/** One's tags with their counts, beside the list; each narrows the list down. */

export interface TagsPanel {
  readonly element: HTMLElement;
  /** One's tags, as they were read last. */
  readonly tags: readonly Tag[];
  /** Shows which tags the search names. */
  mark(searchText: string): void;
  /** Reads the tags again, soon: many changes in a row cost one request. */
  refresh(): void;
  read(): Promise<void>;
}

interface Options {
  onToggle(name: string): void;
  onAll(): void;
}

/** More of them nobody reads; the field above finds the others. */
const SHOWN = 300;

const REFRESH_MS = 1_000;

/** While little is left of the quota, counts may be a while behind. */
const REFRESH_LATER_MS = 15_000;

export function tagsPanel({ onToggle, onAll }: Options): TagsPanel {
  let tags: Tag[] = [];
  let searchText = '';
  let timer: ReturnType<typeof setTimeout> | undefined;
  const list = make('ul', { class: 'tags' });
  const find = make('input', {
    type: 'search',
    'aria-label': texts.tags.find,
    placeholder: texts.tags.find,
    dir: 'auto',
    autocomplete: 'off',
  });
  find.addEventListener('input', () => draw());
  const element = make(
    'aside',
    { class: 'side', 'aria-label': texts.tags.title },
    make('h2', {}, texts.tags.title),
    find,
    list,
  );

  const entry = ({ name, bookmark_count }: Tag) =>
    make(
      'li',
      {},
      make(
        'button',
        {
          type: 'button',
          class: 'tag',
          'aria-pressed': hasTag(searchText, name) ? 'true' : 'false',
          'aria-label': texts.tags.count(name, bookmark_count),
          onclick: () => onToggle(name),
        },
        make('span', { class: 'name', dir: 'auto' }, name),
        make('span', { class: 'count' }, texts.number(bookmark_count)),
      ),
    );
  const draw = () => {
    const sought = find.value.trim().toLowerCase();
    const found = sought === '' ? tags : tags.filter(({ name }) => name.toLowerCase().includes(sought));
    find.hidden = tags.length < 10;
    const focused = document.activeElement?.closest<HTMLElement>('.side .tag')?.getAttribute('aria-label');
    refill(list, ...found.slice(0, SHOWN).map(entry));
    if (tags.length === 0) refill(list, make('li', { class: 'hint' }, texts.tags.none));
    if (focused != null) list.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  };
  const read = async () => {
    ({ tags } = await ask(() => client.listTags()));
    draw();
  };
  void onAll;
  void button;
  return {
    element,
    get tags() {
      return tags;
    },
    mark(text) {
      searchText = text;
      draw();
    },
    refresh() {
      clearTimeout(timer);
      // Counts that could not be read stay as they were until the next change.
      timer = setTimeout(() => void read().catch(() => {}), quotaLeft() > 30 ? REFRESH_MS : REFRESH_LATER_MS);
    },
    read,
  };
}
