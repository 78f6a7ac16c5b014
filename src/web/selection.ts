import type { Bookmark, Tag } from '../domain/resources.ts';
import type { Collection } from './collection.ts';
import { button, make, makeForm, put, refill, submitButton } from './dom.ts';
import { notifyBriefly, notifyError } from './notices.ts';
import { ask, client, isLarge, type RunQuietly } from './session.ts';
import { texts } from './texts.ts';

/** The selected bookmarks, and the bar with the actions on all of them. */

interface Selection {
  readonly element: HTMLElement;
  has(bookmark: Bookmark): boolean;
  /**
   * Selects or deselects a bookmark. With `isRange`, does the same for all bookmarks between this bookmark and the
   * bookmark of the previous call.
   */
  select(bookmark: Bookmark, isSelected: boolean, isRange: boolean): void;
  clear(): void;
  /** Draws the bar. Deselects bookmarks that are no longer in the list. Call this when the list has changed. */
  draw(): void;
}

interface Options {
  onChange(): void;
  onDelete(bookmarks: Bookmark[]): void;
  ownTags(): readonly Tag[];
  runQuietly: RunQuietly;
}

export function createSelection(
  collection: Collection,
  { onChange, onDelete, ownTags, runQuietly }: Options,
): Selection {
  const ids = new Set<number>();
  /** The id of the bookmark that was passed to the previous call of `select`. */
  let lastId: number | undefined;
  /** Set while all pages of the search are being read. */
  let readingAll: AbortController | undefined;
  const element = make('div', {
    class: 'selection',
    role: 'region',
    'aria-label': texts.selection.label,
    hidden: true,
  });
  const count = make('p', { role: 'status' });
  const known = make('datalist', { id: 'own-tags' });
  const name = make('input', {
    'aria-label': texts.selection.tagName,
    placeholder: texts.selection.tagName,
    list: 'own-tags',
    autocomplete: 'off',
    dir: 'auto',
    onfocus: () =>
      refill(
        known,
        ...ownTags()
          .slice(0, 200)
          .map((tag) => make('option', { value: tag.name })),
      ),
  });

  const draw = () => {
    const { rows, total = 0 } = collection;
    if (ids.size > 0) {
      const shown = new Set(rows.map(({ id }) => id));
      for (const id of ids) if (!shown.has(id)) ids.delete(id);
    }
    element.hidden = ids.size === 0;
    all.hidden = readingAll !== undefined || ids.size >= total;
    refill(all, texts.selection.all(total));
    refill(count, readingAll ? texts.selection.reading(rows.length, total) : texts.selection.count(ids.size));
    document.body.classList.toggle('selecting', ids.size > 0);
  };
  const changed = () => {
    draw();
    onChange();
  };
  const clear = () => {
    readingAll?.abort();
    readingAll = undefined;
    if (ids.size === 0) return;
    ids.clear();
    changed();
  };
  const selectAll = async () => {
    const own = new AbortController();
    readingAll = own;
    draw();
    const isComplete = await collection.readAll(own.signal);
    if (own.signal.aborted) return;
    readingAll = undefined;
    if (isComplete) for (const { id } of collection.rows) ids.add(id);
    else notifyError(texts.list.failed);
    changed();
  };
  const changeTag = async (kind: 'add_tags' | 'remove_tags') => {
    const tag = name.value.trim();
    if (tag === '') return name.focus();
    const chosen = [...ids];
    try {
      if (isLarge(chosen.length)) {
        const { tagMany } = await import('./many.ts');
        if (!(await tagMany(chosen, kind, tag, runQuietly))) return;
      } else await ask(() => client.editBookmarks({ ids: chosen, [kind]: [tag] }));
      name.value = '';
      notifyBriefly(texts.selection[kind === 'add_tags' ? 'tagged' : 'untagged'](chosen.length, tag));
    } catch (error) {
      notifyError(error);
    }
  };
  const all = button('', () => void selectAll(), { kind: 'plain all' });
  const form = makeForm(
    '',
    () => changeTag('add_tags'),
    name,
    known,
    submitButton(texts.selection.tag, 'plain'),
    button(texts.selection.untag, () => void changeTag('remove_tags')),
  );
  put(
    element,
    count,
    all,
    form,
    button(
      texts.selection.delete,
      () => {
        const chosen = collection.rows.filter(({ id }) => ids.has(id));
        // Many bookmarks are deleted only after a question. If the user cancels, they stay selected.
        if (!isLarge(chosen.length)) clear();
        onDelete(chosen);
      },
      { kind: 'danger', icon: 'trash' },
    ),
    button(texts.selection.clear, clear),
  );
  /**
   * Returns the ids of the rows from `lastId` to `id`. If the list no longer has a row for `lastId`, returns only `id`.
   */
  const rangeTo = (id: number): number[] => {
    const shown = collection.rows.map((row) => row.id);
    const [from, to] = [shown.indexOf(lastId ?? id), shown.indexOf(id)];
    return from < 0 ? [id] : shown.slice(Math.min(from, to), Math.max(from, to) + 1);
  };
  return {
    element,
    has: ({ id }) => ids.has(id),
    select({ id }, isSelected, isRange) {
      for (const each of isRange ? rangeTo(id) : [id]) {
        if (isSelected) ids.add(each);
        else ids.delete(each);
      }
      lastId = id;
      changed();
    },
    clear,
    draw,
  };
}
