import type { Bookmark, Tag } from '../domain/resources.ts';
import { button, buttonRow, make, refill } from './dom.ts';
import { addForm, type Editor, editForm, readDraft } from './editor.ts';
import { noticeElements, notifyError } from './notices.ts';
import { ask, client, watchSession } from './session.ts';
// A dialog needs this module when the session ends.
import './sign-in.ts';
import { moreTexts } from './more-texts.ts';
import { requireUser } from './start.ts';
import { texts } from './texts.ts';

/**
 * The window that the bookmarklet opens: a form for the page that the user was reading. The bookmark is saved only when
 * the user submits the form.
 */

await requireUser();

let tags: readonly Tag[] = [];
const main = make('main', { class: 'save' });

function end(text: string): void {
  refill(
    main,
    make('p', { class: 'done', role: 'status' }, text),
    make('a', { href: '/' }, moreTexts.save.open),
  );
  // Browsers allow `close` only in a window that a script has opened, as the bookmarklet does.
  setTimeout(() => close(), 1_200);
}

/**
 * Confirms that the bookmark is saved. Then the window closes by itself, unless the user chooses to edit the bookmark
 * or to undo.
 */
function endSaved(bookmark: Bookmark, isNew: boolean): void {
  const timer = setTimeout(() => close(), 5_000);
  /** Makes a button's action keep the window open. */
  const act = (work: () => void) => () => {
    clearTimeout(timer);
    work();
  };
  const again = () => endSaved(bookmark, isNew);
  const undo = () =>
    void ask(() => client.deleteBookmark({ id: bookmark.id, trash: true })).then(
      () => end(moreTexts.save.undone),
      notifyError,
    );
  refill(
    main,
    make('p', { class: 'done', role: 'status' }, texts.editor.saved),
    buttonRow(
      button(
        texts.editor.edit,
        act(() => show(editForm(bookmark, { ...optionsFor(isNew), onCancel: again }))),
        { icon: 'edit' },
      ),
      isNew && button(texts.undo, act(undo)),
    ),
    make('a', { href: '/' }, moreTexts.save.open),
  );
}

const optionsFor = (isNew: boolean) => ({
  ownTags: () => tags,
  onSaved: (bookmark: Bookmark) => endSaved(bookmark, isNew),
  onKept: () => end(texts.editor.kept),
  onCancel: () => end(moreTexts.save.cancelled),
});

function show(editor: Editor): void {
  refill(main, make('h1', { class: 'hidden' }, moreTexts.save.title), editor.element);
  editor.focus();
}

document.body.replaceChildren(main, ...noticeElements());
document.body.dataset.started = 'yes';
document.title = moreTexts.save.title;
watchSession();
show(addForm(readDraft(), optionsFor(true), (known) => show(editForm(known, optionsFor(false)))));
// Without the tags, the form works but suggests none.
await ask(() => client.listTags()).then(
  (list) => {
    tags = list.tags;
  },
  () => {},
);
