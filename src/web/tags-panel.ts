import type { Bookmark, Changes, Tag } from '../domain/resources.ts';
import { button, icon, iconButton, make, refill } from './dom.ts';
import { describeError, hasCode } from './errors.ts';
import { notify } from './notices.ts';
import { tagsOf } from './search-text.ts';
import { ask, client, quotaLeft } from './session.ts';
import { createTagCounts } from './tag-counts.ts';
import { texts } from './texts.ts';

/** One's tags with their counts, beside the list. Each narrows the list down; they can be renamed, merged and deleted. */

export interface TagsPanel {
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
  let isManaging = false;
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
  const manage = iconButton('edit', texts.tags.manage, () => {
    isManaging = !isManaging;
    manage.setAttribute('aria-pressed', String(isManaging));
    draw();
  });
  manage.setAttribute('aria-pressed', 'false');
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
    const entry = isManaging
      ? (tag: Tag) => managedEntry(tag, tags, read)
      : (tag: Tag) => filterEntry(tag, isSought(tag.name), onToggle);
    refill(list, ...found.slice(0, SHOWN).map(entry));
    if (tags.length === 0) refill(list, make('li', { class: 'hint' }, texts.tags.none));
    if (focused != null) list.querySelector<HTMLElement>(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
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

/** A tag with the buttons to rename it, and to delete it. */
function managedEntry(tag: Tag, all: readonly Tag[], onDone: () => Promise<void>): HTMLElement {
  const act = async (work: () => Promise<unknown>) => {
    try {
      await ask(work);
    } catch (error) {
      // Deleted elsewhere meanwhile: the list says so.
      if (!hasCode(error, 'NOT_FOUND')) notify(describeError(error), { kind: 'error' });
    }
    await onDone().catch(() => {});
  };
  const rename = async () => {
    const name = await askFor(texts.tags.rename(tag.name), texts.tags.newName(tag.name), tag.name);
    if (name === undefined || name === tag.name) return;
    const same = all.find((each) => each.id !== tag.id && isSameName(each.name, name));
    if (same === undefined) return act(() => client.renameTag({ id: tag.id, name }));
    if (await confirm(texts.tags.mergeAsk(tag.name, same.name), texts.tags.merge))
      await act(() => client.mergeTags({ id: tag.id, into_id: same.id }));
  };
  const remove = async () => {
    if (await confirm(texts.tags.deleteAsk(tag.name, tag.bookmark_count), texts.tags.deleteButton))
      await act(() => client.deleteTag(tag.id));
  };
  return make(
    'li',
    { class: 'managed' },
    icon('tag'),
    make('span', { class: 'name', dir: 'auto' }, tag.name),
    iconButton('edit', texts.tags.rename(tag.name), () => void rename()),
    iconButton('trash', texts.tags.delete(tag.name), () => void remove()),
  );
}

const isSameName = (one: string, other: string): boolean =>
  one.normalize('NFC').toLowerCase() === other.normalize('NFC').toLowerCase();

/** Shows a dialog; resolves with what it was closed with, undefined where it was cancelled. */
function showDialog(label: string, submit: string, ...content: HTMLElement[]): Promise<boolean> {
  return new Promise((resolve) => {
    const form = make(
      'form',
      { method: 'dialog', class: 'ask' },
      make('h2', { id: 'ask' }, label),
      ...content,
      make(
        'div',
        { class: 'buttons' },
        make('button', { type: 'submit', value: 'yes', class: 'primary' }, submit),
        button(texts.cancel, () => dialog.close()),
      ),
    );
    const dialog = make('dialog', { 'aria-labelledby': 'ask' }, form);
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const confirm = (question: string, submit: string): Promise<boolean> => showDialog(question, submit);

async function askFor(title: string, label: string, value: string): Promise<string | undefined> {
  const input = make('input', {
    value,
    required: true,
    maxlength: 255,
    dir: 'auto',
    autocomplete: 'off',
    'aria-label': label,
  });
  const isGiven = await showDialog(title, texts.tags.done, input);
  return isGiven ? input.value.trim() : undefined;
}
