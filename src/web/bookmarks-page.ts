import { parseSearch } from '../client/search-text.ts';
import type { Bookmark, Changes } from '../domain/resources.ts';
import { createCollection, type Order } from './collection.ts';
import { fillTime } from './dates.ts';
import { createDeletions } from './deletions.ts';
import { button, buttonRow, icon, make, makeChoice, refill } from './dom.ts';
import type { Draft, Editor } from './editor.ts';
import { type Following, followChanges } from './follow.ts';
import { addKeys } from './keys.ts';
import { notify, notifyBriefly, notifyError } from './notices.ts';
import { drawRow, openRow, type RowActions } from './row.ts';
import { searchBox } from './search-box.ts';
import {
  findNamedTag,
  isBlank,
  renameInSearch,
  replaceWordsByTag,
  termsOf,
  togglePath,
  toggleTag,
} from './search-text.ts';
import { createSelection } from './selection.ts';
import { trashDays, watchSession } from './session.ts';
import { showShell } from './shell.ts';
import { nameKey } from './shortcuts.ts';
import { requireUser } from './start.ts';
import { tagsPanel } from './tags-panel.ts';
import { texts } from './texts.ts';
import { windowedList } from './windowed-list.ts';

/** The page at `/`: the search, the list of bookmarks, the tags, and the forms to add and edit a bookmark. */

interface Editing {
  bookmark: Bookmark;
  editor: Editor;
  row: HTMLElement;
}

const user = await requireUser();

/** The user's position in the list. It is stored with each entry of the browser's history. */
interface Place {
  order: Order;
  /** How many bookmarks the list had. */
  count: number;
  /** The scroll position in pixels. */
  top: number;
}

/** A list with at most this many rows does not say where it ends. */
const SHORT_LIST = 20;

const placeOf = (state: { place?: Place } | null): Place | undefined => state?.place;

const textInAddress = () => new URLSearchParams(location.search).get('q') ?? '';
const addressOf = (text: string) => (text.trim() === '' ? '/' : `/?q=${encodeURIComponent(text)}`);

/**
 * The terms that the rows highlight. They are the terms of the search that found these rows. The search field may
 * already contain a newer text.
 */
let terms: readonly string[] = [];
let editing: Editing | undefined;
let adding: Editor | undefined;

const collection = createCollection({
  onChange: (added) => draw(added),
  onRead: (bookmarks) => panel.note(bookmarks),
});
const deletions = createDeletions(collection, user.email, runQuietly);
const selection = createSelection(collection, {
  onChange: () => list.redrawAll(),
  onDelete: (bookmarks) => deletions.remove(bookmarks),
  ownTags: () => panel.tags,
  runQuietly,
});

const actions: RowActions = {
  edit: (bookmark) => void openEditor(bookmark).catch(notifyError),
  remove(bookmark) {
    const at = list.focused();
    deletions.remove([bookmark]);
    if (at >= 0) list.focus(Math.min(at, collection.rows.length - 1));
  },
  select: selection.select,
  isSelected: selection.has,
  filterByTag: (name) => changeSearch(toggleTag(box.text, name)),
  terms: () => terms,
};

const list = windowedList<Bookmark>({
  label: texts.name,
  draw: (bookmark) => (editing?.bookmark.id === bookmark.id ? editing.row : drawRow(bookmark, actions)),
  isLow: ({ tags }) => tags.length === 0,
  focusTarget: (row) => row.querySelector<HTMLElement>('.title, .editor input'),
  onNearEnd: () => void (collection.state === 'ready' && collection.readMore()),
});
const panel = tagsPanel({
  onToggleTag: (name) => changeSearch(toggleTag(box.text, name)),
  onTogglePath: (path) => changeSearch(togglePath(box.text, path)),
  onRename: followRename,
});
const box = searchBox(
  (text) => replaceSearch(text),
  () => panel.tags,
);

const heading = make('h1', {}, texts.name);
const count = make('p', { class: 'total', role: 'status' });
const notes = make('div', { class: 'search-notes', role: 'status' });
const slot = make('div', { class: 'slot' });
const end = make('div', { class: 'end' });
const orders = makeChoice(texts.search.orders, {
  'aria-label': texts.search.order,
  onchange: () => beginSearch(),
});
const addButton = button(texts.editor.addShort, () => add({}), { kind: 'primary', icon: 'add' });
nameKey(addButton, 'n');
const tagsButton = button(texts.tags.title, () => toggleSide(), { kind: 'plain tags-button', icon: 'tag' });
tagsButton.setAttribute('aria-expanded', 'false');

const showTrash = () => import('./trash-screen.ts').then(({ openTrash }) => openTrash());
const trashButton = button(texts.trash, () => void showTrash().catch(notifyError), {
  kind: 'plain trash-button',
  icon: 'trash',
});

function toggleSide(): void {
  const isOpen = panel.element.classList.toggle('shown');
  tagsButton.setAttribute('aria-expanded', String(isOpen));
}

/** Starts a search and adds it to the browser's history, so that Back undoes it. */
function changeSearch(text: string): void {
  keepPlace();
  history.pushState(null, '', addressOf(text));
  box.text = text;
  beginSearch();
}

/** Starts a search that replaces the current entry of the browser's history. */
function replaceSearch(text: string): void {
  history.replaceState(null, '', addressOf(text));
  box.text = text;
  beginSearch();
}

function beginSearch(): void {
  selection.clear();
  void collection.search(box.text, orders.value);
  panel.mark(box.text);
  scrollTo(0, 0);
}

function keepPlace(): void {
  const place: Place = { order: orders.value, count: collection.rows.length, top: scrollY };
  history.replaceState({ place }, '');
}

/**
 * Runs the search, reads about as many bookmarks as the list had at `place`, and scrolls to the position of `place`. If
 * `place` is undefined, reads only the first page. Never reads more than about 500 bookmarks.
 */
async function returnTo(place: Place | undefined): Promise<void> {
  await collection.search(box.text, orders.value, place?.count);
  // The list may get its full height only in its first frame, so the page scrolls after this frame has begun.
  if (place !== undefined) requestAnimationFrame(() => scrollTo(0, place.top));
}

/** Draws everything that depends on the collection. The first `added` rows are new. */
function draw(added: number): void {
  moveEditorWithoutRow();
  const newTerms = termsOf(box.text);
  if (
    (collection.state === 'ready' || collection.searched !== undefined) &&
    newTerms.join('\n') !== terms.join('\n')
  ) {
    terms = newTerms;
    list.redrawAll();
  }
  list.show(collection.rows, collection.total ?? 0, added);
  selection.draw();
  drawNotesAndCount();
  drawEnd();
}

/** Draws the notes about the search, and the number of bookmarks. */
function drawNotesAndCount(): void {
  const { total, state, searched } = collection;
  const cap = user.bookmark_limit;
  const { problems } = parseSearch(box.text);
  const newNotes: HTMLElement[] = problems.map(({ part, kind }) =>
    make('p', {}, texts.search.problems[kind](part)),
  );
  if (searched !== undefined) newNotes.push(make('p', {}, texts.search.partial(searched)));
  // If the words of the search are the name of a tag, a button offers to search by the tag instead.
  const tag = state === 'ready' ? findNamedTag(box.text, panel.tags) : undefined;
  if (tag !== undefined) {
    const label = texts.search.offer(tag.bookmark_count, tag.name);
    newNotes.push(button(label, () => changeSearch(replaceWordsByTag(box.text, tag.name)), { icon: 'tag' }));
  }
  // Screen readers announce inserted notes again, so the notes are replaced only if their text has changed.
  const newText = newNotes.map(({ textContent }) => textContent).join('');
  if (notes.textContent !== newText) refill(notes, ...newNotes);
  if (state === 'failed' || total === undefined) refill(count);
  else if (!isBlank(box.text)) refill(count, texts.search.found(total));
  else if (searched !== undefined) refill(count);
  else refill(count, cap === null ? texts.bookmarks(total) : texts.list.ofCap(total, cap));
}

/** Draws what is below the list: a message, the button that reads more, or help for an empty list. */
function drawEnd(): void {
  const { rows, state, hasMore, searched } = collection;
  end.className = rows.length === 0 && state === 'ready' ? 'end empty' : 'end';
  if (state === 'failed') {
    refill(
      end,
      make('p', { role: 'alert' }, texts.list.failed),
      button(texts.tryAgain, () => void collection.readMore()),
    );
  } else if (searched !== undefined) refill(end, rows.length === 0 && make('h2', {}, texts.list.none));
  else if (state === 'reading') refill(end, make('p', {}, texts.list.loading));
  else if (hasMore)
    refill(
      end,
      button(texts.list.more, () => void collection.readMore()),
    );
  else if (rows.length > 0) refill(end, rows.length > SHORT_LIST && make('p', {}, texts.list.end));
  else if (isBlank(box.text)) drawEmpty();
  else refill(end, icon('search'), make('h2', {}, texts.list.none), make('p', {}, texts.list.noneHelp));
}

function drawEmpty(): void {
  refill(
    end,
    icon('mark'),
    make('h2', {}, texts.list.empty),
    make('p', {}, texts.list.emptyHelp),
    buttonRow(
      button(texts.editor.add, () => add({}), { kind: 'primary' }),
      make('a', { class: 'button plain', href: '/settings#import' }, texts.list.import),
    ),
  );
}

/** Loads the forms. The page does this after it has shown the list, before an update can remove this module. */
const loadForms = () => import('./editor.ts');

/** Opens the form for a new bookmark. Shows a notice if the form cannot be loaded. */
const add = (draft: Draft) => void openAdd(draft).catch(notifyError);

/**
 * Opens the form for a new bookmark above the list. If such a form is already open and `warning` is undefined, only
 * focuses that form. `gone` warns that the draft comes from a bookmark that was deleted elsewhere.
 */
async function openAdd(draft: Draft, warning?: 'gone'): Promise<void> {
  const { addForm } = await loadForms();
  // A draft with a warning always gets a form of its own, because its text would otherwise be lost.
  if (adding && warning === undefined) {
    adding.focus();
    return;
  }
  const close = () => {
    form.element.remove();
    if (adding === form) adding = undefined;
    addButton.focus();
  };
  const form = addForm(
    draft,
    {
      ownTags: () => panel.tags,
      onCancel: close,
      onSaved(bookmark) {
        close();
        collection.put(bookmark);
        notifyBriefly(texts.editor.added);
      },
      onKept() {
        close();
        notify(texts.editor.kept);
        void import('./app.ts').then(({ sendWaiting }) => sendWaiting(user.email));
      },
    },
    (existing) => {
      close();
      void openEditor(existing);
    },
  );
  adding = form;
  slot.prepend(form.element);
  scrollTo(0, 0);
  if (warning) form.warn(undefined);
  form.focus();
}

/**
 * Opens the form that edits a bookmark, in the bookmark's row. If the bookmark has no row, opens the form above the
 * list. If an edit form is already open, only focuses that form.
 */
async function openEditor(bookmark: Bookmark): Promise<void> {
  const { editForm } = await loadForms();
  if (editing) {
    editing.editor.focus();
    return;
  }
  const editor = editForm(bookmark, {
    ownTags: () => panel.tags,
    onCancel: closeEditor,
    onSaved(saved) {
      closeEditor();
      collection.put(saved);
      notifyBriefly(texts.editor.saved);
    },
  });
  editing = { bookmark, editor, row: openRow(editor.element) };
  list.open(bookmark.id);
  moveEditorWithoutRow();
  editor.focus();
}

function closeEditor(): void {
  const id = editing?.bookmark.id;
  editing?.editor.element.remove();
  editing = undefined;
  list.open(undefined);
  const at = collection.rows.findIndex((row) => row.id === id);
  if (at >= 0) list.focus(at);
}

/** Moves the edit form above the list, with all input, if the list has no row for the edited bookmark. */
function moveEditorWithoutRow(): void {
  if (!editing || collection.rows.some(({ id }) => id === editing?.bookmark.id)) return;
  const { element } = editing.editor;
  if (element.parentElement === slot) return;
  const focused = document.activeElement;
  slot.append(element);
  list.open(undefined);
  // An element that is moved loses the focus.
  if (focused instanceof HTMLElement && element.contains(focused)) focused.focus();
}

/**
 * Warns in the edit form if its bookmark was changed elsewhere. If the bookmark was deleted elsewhere, moves the input
 * to a form for a new bookmark, and warns there.
 */
function warnEditor(page: Changes): void {
  if (!editing) return;
  const { bookmark, editor } = editing;
  if (page.deleted.includes(bookmark.id)) {
    const draft = editor.read();
    closeEditor();
    void openAdd(draft, 'gone');
    return;
  }
  const changed = page.bookmarks.find(({ id }) => id === bookmark.id);
  if (changed && changed.updated_at > bookmark.updated_at) editor.warn(changed);
}

/** Replaces the old name of a tag with its new name in the search text. The tag may have been renamed elsewhere. */
function followRename(from: string, to: string): void {
  const renamed = renameInSearch(box.text, from, to);
  if (renamed !== box.text) replaceSearch(renamed);
}

/** Undefined until the page has its first cursor. */
let following: Following | undefined;

/**
 * Runs an action on many bookmarks without applying its changes one page at a time. Afterwards, skips these changes, and
 * reads the list and the tags once.
 */
async function runQuietly<T>(work: () => Promise<T>): Promise<T> {
  following?.pause();
  try {
    return await work();
  } finally {
    await following?.skip();
    // The list may get fewer rows than are selected.
    selection.clear();
    panel.forget();
    const place = { order: orders.value, count: collection.rows.length, top: scrollY };
    await Promise.all([returnTo(place), panel.read().catch(() => {})]);
    following?.resume();
  }
}

function applyChanges(page: Changes, sinceMs: number): void {
  warnEditor(page);
  // The panel comes first, because drawing the list uses the panel's tags.
  panel.apply(page, sinceMs);
  collection.apply(page, sinceMs);
}

if (trashDays() > 0) panel.element.append(trashButton);
const toolbar = make('div', { class: 'toolbar' }, heading, count, tagsButton, orders.element, addButton);
const main = make('main', {}, toolbar, notes, slot, list.element, end, selection.element);
const layout = make('div', { class: 'layout' }, main);
const narrow = matchMedia('(width <= 60rem)');
/** Puts the tags next to the list, or in a narrow window below the button that shows them. */
const placePanel = () => (narrow.matches ? toolbar.after(panel.element) : layout.prepend(panel.element));
narrow.addEventListener('change', placePanel);
placePanel();
showShell('bookmarks', layout, box.element);
document.title = texts.name;
history.scrollRestoration = 'manual';
box.text = textInAddress();
orders.value = placeOf(history.state)?.order ?? 'created';
panel.mark(box.text);
draw(0);

addKeys({
  search: () => box.input.focus(),
  add: () => add({}),
  undo: deletions.undo,
  move: (by) => list.focus(Math.max(0, list.focused() + by)),
  row: () => collection.rows[list.focused()],
  edit: actions.edit,
  remove: actions.remove,
  select: (bookmark) => selection.select(bookmark, !selection.has(bookmark), false),
});
/**
 * True while the user drags an element of this page. A dropped link opens the form for a new bookmark only if the link
 * comes from outside this page.
 */
let isOwnDrag = false;
addEventListener('dragstart', () => {
  isOwnDrag = true;
});
addEventListener('dragend', () => {
  isOwnDrag = false;
});
addEventListener('dragover', (event) => {
  if (!isOwnDrag && event.dataTransfer?.types.includes('text/uri-list')) event.preventDefault();
});
addEventListener('drop', (event) => {
  // `text/uri-list` has one address in each line. Only the first web address is used.
  const [url = ''] = event.dataTransfer?.getData('text/uri-list').match(/^https?:.*/im) ?? [];
  if (isOwnDrag || url === '') return;
  event.preventDefault();
  add({ url });
});
addEventListener('popstate', ({ state }) => {
  box.text = textInAddress();
  orders.value = placeOf(state)?.order ?? orders.value;
  selection.clear();
  panel.mark(box.text);
  void returnTo(placeOf(state));
});
setInterval(() => {
  for (const time of document.querySelectorAll<HTMLTimeElement>('.rows time')) fillTime(time, time.dateTime);
}, 60_000);
watchSession();

following = await followChanges(user.email, applyChanges);
const first = returnTo(placeOf(history.state));
await Promise.all([first, panel.read(first).catch(() => {})]);
following.resume();
void loadForms().catch(() => {});
void import('./app.ts').then(({ startApp }) =>
  startApp(user, isBlank(box.text) && orders.value === 'created' ? collection.rows : undefined),
);

addEventListener('pagehide', () => {
  keepPlace();
  following?.pause();
});
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) following?.resume();
});
void import('./passkeys.ts').then(({ offerPasskey }) => offerPasskey()).catch(() => {});
