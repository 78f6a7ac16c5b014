import { confirm } from './ask-dialog.ts';
import { button, buttonRow, make, makeDialog, refill, showDialog } from './dom.ts';
import { describeError } from './errors.ts';
import { moreTexts } from './more-texts.ts';
import { notifyBriefly, notifyError } from './notices.ts';
import { ask, batchesOf, client, type RunQuietly, trashDays } from './session.ts';
import { texts } from './texts.ts';

/**
 * Actions on many bookmarks. They are sent in batches, and a dialog shows the progress. The user can stop an action
 * between two batches.
 */

/**
 * Sends the batches one after the other. Returns the ids that were sent: all of them, unless the user stops the action
 * or a request fails. Shows the error of a failed request.
 */
async function sendAll(
  ids: readonly number[],
  title: string,
  runQuietly: RunQuietly,
  send: (batch: number[]) => Promise<unknown>,
): Promise<number[]> {
  const words = moreTexts.many;
  const progress = make('progress', { max: ids.length, value: 0, 'aria-label': title });
  const label = make('p', { role: 'status' }, words.progress(0, ids.length));
  let isStopped = false;
  const stop = button(words.stop, () => {
    isStopped = true;
    stop.disabled = true;
  });
  const dialog = makeDialog(title, progress, label, buttonRow(stop));
  dialog.addEventListener('cancel', (event) => {
    event.preventDefault();
    stop.click();
  });
  const warnOfLeaving = (event: Event) => event.preventDefault();
  addEventListener('beforeunload', warnOfLeaving);
  void showDialog(dialog);
  let sent = 0;
  try {
    await runQuietly(async () => {
      for (const batch of batchesOf(ids)) {
        if (isStopped) return;
        await ask(() => send(batch));
        sent += batch.length;
        progress.value = sent;
        refill(label, words.progress(sent, ids.length));
      }
    });
  } catch (error) {
    notifyError(words.ended(sent, ids.length, describeError(error)));
  } finally {
    removeEventListener('beforeunload', warnOfLeaving);
    dialog.close();
  }
  return ids.slice(0, sent);
}

/** Moves bookmarks to the trash, after a question. Returns the ids of the deleted bookmarks. */
export async function deleteMany(ids: readonly number[], runQuietly: RunQuietly): Promise<number[]> {
  const words = moreTexts.many;
  const question = (trashDays() === 0 ? words.deleteForGoodAsk : words.deleteAsk)(ids.length);
  if (!(await confirm(question, texts.selection.delete, 'danger'))) return [];
  return sendAll(ids, words.deleting, runQuietly, (batch) =>
    client.deleteBookmarks({ ids: batch, trash: true }),
  );
}

/** Restores bookmarks from the trash. Returns the ids that were not sent. */
export async function restoreMany(ids: readonly number[], runQuietly: RunQuietly): Promise<number[]> {
  let restored = 0;
  const sent = await sendAll(ids, moreTexts.many.restoring, runQuietly, async (batch) => {
    restored += (await client.restoreBookmarks(batch)).restored.length;
  });
  if (sent.length > 0) notifyBriefly(texts.restored(restored, sent.length));
  return ids.slice(sent.length);
}

/** Adds a tag to bookmarks or removes it, after a question. Returns whether all bookmarks were changed. */
export async function tagMany(
  ids: readonly number[],
  kind: 'add_tags' | 'remove_tags',
  tag: string,
  runQuietly: RunQuietly,
): Promise<boolean> {
  const words = moreTexts.many;
  const [question, label] =
    kind === 'add_tags'
      ? [words.tagAsk(ids.length, tag), texts.selection.tag]
      : [words.untagAsk(ids.length, tag), texts.selection.untag];
  if (!(await confirm(question, label, 'primary'))) return false;
  const sent = await sendAll(ids, words.tagging, runQuietly, (batch) =>
    client.editBookmarks({ ids: batch, [kind]: [tag] }),
  );
  return sent.length === ids.length;
}
