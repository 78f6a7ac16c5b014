import type { Tag } from '../domain/resources.ts';
import { foldText, isUnder } from '../domain/text.ts';
import { showTag } from '../formats/folders.ts';
import { countBelow, growTree, type TagNode } from '../formats/tag-tree.ts';
import { askForText, confirmDeletion } from './ask-dialog.ts';
import {
  button,
  buttonRow,
  check,
  icon,
  iconButton,
  make,
  makeChoice,
  makeDialog,
  redrawList,
  refill,
  searchField,
  showDialog,
} from './dom.ts';
import { hasCode } from './errors.ts';
import { moreTexts } from './more-texts.ts';
import { notifyBriefly, notifyError } from './notices.ts';
import { ask, client } from './session.ts';
import { texts } from './texts.ts';

/**
 * A dialog that lists all tags with their counts, and all folders. In the dialog, the user renames, merges and deletes tags. Before an
 * action, the dialog says what will change.
 */

export interface TagsScreen {
  /** Draws the current tags. */
  draw(): void;
}

interface Options {
  tags(): readonly Tag[];
  /** Reads the tags again. */
  read(): Promise<void>;
  onClose(): void;
}

/** How many tags to show at first. A button below the list shows as many more. */
const SHOWN = 300;

/** A tag, or a folder: a path that has tags below it and is no tag itself. A folder has no id. */
type Entry = Omit<Tag, 'id'> & { id?: number };

const COMPARISONS = {
  use: (one: Entry, other: Entry) => other.bookmark_count - one.bookmark_count,
  name: (one: Entry, other: Entry) => one.name.localeCompare(other.name),
};

const foldersOf = (nodes: readonly TagNode[]): Entry[] =>
  nodes.flatMap((node) => [
    ...(node.tag === null ? [{ name: node.path, bookmark_count: countBelow(node) }] : []),
    ...foldersOf(node.tags),
  ]);

const isUnused = (tag: Tag): boolean => tag.bookmark_count === 0;

/** Opens the dialog. */
export function openTagsScreen({ tags, read, onClose }: Options): TagsScreen {
  const words = moreTexts.tags;
  const list = make('ul', { class: 'items long' });
  const rest = make('p', { class: 'hint', role: 'status' });
  const find = searchField(texts.tags.find, () => draw());
  const order = makeChoice(words.orders, { 'aria-label': texts.search.order, onchange: () => draw() });
  let room = SHOWN;
  const more = button(texts.list.more, () => {
    room += SHOWN;
    draw();
  });
  const unused = button('', () => void deleteUnused(), { kind: 'danger' });
  const closing = new AbortController();
  const dialog = makeDialog(
    texts.tags.manage,
    make('p', { class: 'hint' }, words.lead),
    buttonRow(find, order.element),
    list,
    rest,
    buttonRow(
      button(texts.close, () => dialog.close()),
      more,
      unused,
    ),
  );
  dialog.className = 'wide';

  /** Runs an action, and reads the tags again. Then shows `done` if the action has succeeded. */
  const act = async (work: () => Promise<unknown>, done?: string) => {
    let message: string | undefined;
    try {
      await ask(work);
      message = done;
    } catch (error) {
      // `NOT_FOUND` means that the tag was deleted elsewhere. Reading the tags again removes it from the list.
      if (!hasCode(error, 'NOT_FOUND')) notifyError(error);
    }
    await read().catch(() => {});
    if (message !== undefined) notifyBriefly(message);
  };
  const countChildren = (entry: Entry): number => {
    const key = foldText(entry.name);
    return tags().filter(({ id, name }) => id !== entry.id && isUnder(foldText(name), key)).length;
  };
  const rename = async (tag: Entry) => {
    const { id } = tag;
    const below = countChildren(tag);
    const withChildren = make('input', { type: 'checkbox', checked: below > 0 });
    const name = await askForText(
      words.rename(tag.name),
      words.newName(tag.name),
      words.save,
      tag.name,
      ...(id !== undefined && below > 0 ? [check(withChildren, words.withChildren(below))] : []),
    );
    if (name === undefined || name === tag.name) return;
    const done = words.renamed(showTag(name));
    if (id === undefined || withChildren.checked)
      return act(() => client.renameTagPath(tag.name, name), done);
    const same = tags().find((each) => each.id !== id && foldText(each.name) === foldText(name));
    if (same === undefined) return act(() => client.renameTag({ id, name }), done);
    const question = words.mergeAsk(tag.name, tag.bookmark_count, same.name, same.bookmark_count);
    if (await confirmDeletion(question, words.merge))
      await act(() => client.mergeTags({ id, into_id: same.id }));
  };
  const remove = async (tag: Entry) => {
    const { id } = tag;
    const below = countChildren(tag);
    if (id === undefined) {
      if (await confirmDeletion(words.deleteFolderAsk(tag.name, below), words.deleteButton))
        await act(() => client.deleteTagPath(tag.name));
      return;
    }
    const withChildren = make('input', { type: 'checkbox' });
    const fields = below > 0 ? [check(withChildren, words.deleteBelow(below))] : [];
    if (await confirmDeletion(words.deleteAsk(tag.name, tag.bookmark_count), words.deleteButton, ...fields))
      await act(() => (withChildren.checked ? client.deleteTagPath(tag.name) : client.deleteTag(id)));
  };
  /**
   * Deletes unused tags one by one and stops when the dialog closes. Skips a tag that has been used in the meantime.
   */
  const deleteUnused = async () => {
    await read().catch(() => {});
    const chosen = tags().filter(isUnused);
    if (chosen.length === 0) return;
    if (!(await confirmDeletion(words.unusedAsk(chosen.length), words.unused(chosen.length)))) return;
    unused.disabled = true;
    await act(async () => {
      for (const [at, { id }] of chosen.entries()) {
        if (closing.signal.aborted) return;
        refill(rest, words.deleting(at, chosen.length));
        const current = tags().find((tag) => tag.id === id);
        if (current === undefined || !isUnused(current)) continue;
        await client.deleteTag(id).catch((error: unknown) => {
          if (!hasCode(error, 'NOT_FOUND')) throw error;
        });
      }
    });
    unused.disabled = false;
    draw();
  };
  const entry = (tag: Entry) =>
    make(
      'li',
      {},
      icon('tag'),
      make('span', { class: 'name', dir: 'auto', title: tag.name }, showTag(tag.name)),
      make(
        'span',
        { class: 'hint' },
        tag.id === undefined ? words.below(countChildren(tag)) : texts.bookmarks(tag.bookmark_count),
      ),
      iconButton('edit', words.rename(tag.name), () => void rename(tag)),
      iconButton('trash', words.delete(tag.name), () => void remove(tag)),
    );
  const draw = () => {
    const all = tags();
    const sought = foldText(find.value.trim());
    const found = [...all, ...foldersOf(growTree(all))]
      .filter(({ name }) => foldText(name).includes(sought))
      .sort(COMPARISONS[order.value]);
    redrawList(list, ...found.slice(0, room).map(entry));
    const count = all.filter(isUnused).length;
    more.hidden = found.length <= room;
    if (!unused.disabled) refill(rest, !more.hidden && texts.tags.shown(room, found.length));
    unused.hidden = count === 0;
    refill(unused, words.unused(count));
  };

  draw();
  void showDialog(dialog).then(() => {
    closing.abort();
    onClose();
  });
  return { draw };
}
