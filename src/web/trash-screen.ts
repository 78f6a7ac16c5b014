import type { TrashedBookmark } from '../domain/resources.ts';
import { confirmDeletion } from './ask-dialog.ts';
import { fillTime } from './dates.ts';
import { button, buttonRow, iconButton, make, makeDialog, refill, showDialog } from './dom.ts';
import { moreTexts } from './more-texts.ts';
import { notifyBriefly, notifyError } from './notices.ts';
import { drawLink, hostOf, titleOf } from './row.ts';
import { ask, batchesOf, client, trashDays } from './session.ts';
import { texts } from './texts.ts';

/** A dialog that lists the deleted bookmarks. The user restores them or deletes them permanently there. */

const PAGE = 100;

/** Opens the dialog and reads the first page. */
export function openTrash(): void {
  const words = moreTexts.trash;
  const list = make('ul', { class: 'items long' });
  const said = make('p', { class: 'hint', role: 'status' });
  const more = button(texts.list.more, () => void act(readMore));
  const restoreShown = button('', () => void act(() => restore(shown)));
  const empty = button(words.empty, () => void emptyTrash(), { kind: 'danger' });
  const dialog = makeDialog(
    texts.trash,
    make('p', { class: 'hint' }, words.lead(trashDays())),
    list,
    said,
    buttonRow(
      button(texts.close, () => dialog.close()),
      more,
      restoreShown,
      empty,
    ),
  );
  dialog.className = 'wide';
  let shown: readonly TrashedBookmark[] = [];
  let cursor: string | undefined;
  let isRead = false;
  let isBusy = false;

  /**
   * Runs an action unless another one is running. If it leaves nothing to show, reads the next page. If the action fails,
   * shows the error. Then draws the list again.
   */
  const act = async (work: () => Promise<unknown>) => {
    if (isBusy) return;
    isBusy = true;
    try {
      await ask(work);
      if (shown.length === 0 && cursor !== undefined) await ask(readMore);
    } catch (error) {
      notifyError(error);
    }
    isBusy = false;
    draw();
  };
  const readMore = async () => {
    const page = await client.listTrash({ limit: PAGE, cursor });
    shown = [...shown, ...page.bookmarks];
    cursor = page.next_cursor;
    isRead = true;
  };
  const take = (ids: readonly number[]) => {
    const gone = new Set(ids);
    shown = shown.filter(({ id }) => !gone.has(id));
  };
  const restore = async (bookmarks: readonly TrashedBookmark[]) => {
    const wanted = bookmarks.map(({ id }) => id);
    let count = 0;
    for (const ids of batchesOf(wanted)) {
      const { restored } = await client.restoreBookmarks(ids);
      count += restored.length;
      take(ids);
    }
    notifyBriefly(texts.restored(count, wanted.length));
  };
  const remove = async (bookmark: TrashedBookmark) => {
    if (!(await confirmDeletion(words.deleteAsk(titleOf(bookmark)), words.deleteButton))) return;
    await act(async () => {
      await client.deleteFromTrash([bookmark.id]);
      take([bookmark.id]);
    });
  };
  const emptyTrash = async () => {
    const question = cursor === undefined ? words.emptyAsk(shown.length) : words.emptyAskAll;
    if (!(await confirmDeletion(question, words.empty))) return;
    await act(async () => {
      const { count } = await client.emptyTrash();
      notifyBriefly(words.emptied(count));
      shown = [];
      cursor = undefined;
    });
  };
  const entry = (bookmark: TrashedBookmark) => {
    const title = titleOf(bookmark);
    const time = make('time', {});
    fillTime(time, bookmark.deleted_at);
    const restoreOne = button(words.restore, () => void act(() => restore([bookmark])));
    restoreOne.setAttribute('aria-label', words.restoreNamed(title));
    return make(
      'li',
      {},
      make(
        'div',
        { class: 'name' },
        drawLink(bookmark, []),
        make('p', { class: 'hint' }, hostOf(bookmark.url), ' · ', words.deleted, ' ', time),
      ),
      restoreOne,
      iconButton('trash', words.deleteNamed(title), () => void remove(bookmark)),
    );
  };
  const draw = () => {
    const focusedIndex = [...list.children].findIndex((item) => item.contains(document.activeElement));
    refill(list, ...shown.map(entry));
    if (focusedIndex >= 0) {
      const next = list.children[Math.min(focusedIndex, shown.length - 1)];
      (next?.querySelector<HTMLElement>('button') ?? dialog.querySelector('button'))?.focus();
    }
    refill(said, shown.length === 0 && (isRead ? words.none : texts.list.failed));
    refill(restoreShown, words.restoreShown(shown.length));
    restoreShown.hidden = shown.length < 2;
    empty.hidden = shown.length === 0;
    more.hidden = isRead && cursor === undefined;
  };

  draw();
  refill(said, texts.list.loading);
  void showDialog(dialog);
  void act(readMore);
}
