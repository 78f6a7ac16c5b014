import type { Bookmark, Tag } from '../domain/resources.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { formatAgo } from './dates.ts';
import { button, field, make, newId, refill } from './dom.ts';
import { describeError, hasCode, isAbort } from './errors.ts';
import { titleOf } from './row.ts';
import { ask, client } from './session.ts';
import { tagField } from './tag-field.ts';
import { texts } from './texts.ts';

/** The form that adds a bookmark or changes one. What is typed stays until it is saved or given up. */

export interface Draft {
  url?: string;
  title?: string;
  comment?: string;
  tags?: string[];
}

interface EditorOptions {
  ownTags: () => readonly Tag[];
  onSaved(bookmark: Bookmark): void;
  onCancel(): void;
}

export interface Editor {
  readonly element: HTMLFormElement;
  focus(): void;
  /** What stands in the form. */
  read(): Required<Draft>;
  /** The bookmark was changed or deleted elsewhere while it is edited. */
  warn(what: 'changed' | 'gone'): void;
}

interface EditorForm {
  title: string;
  submit: string;
  draft: Draft;
  options: EditorOptions;
  save(draft: Required<Draft>): Promise<Bookmark>;
  /** Called with what stands in the field of the address. */
  onUrl?(url: string, notice: HTMLElement): void;
}

const isWebAddress = (text: string): boolean => parseWebUrl(text) !== null;

/** Adds the scheme that people leave out: `example.org` is meant as https. */
export const completeUrl = (text: string): string =>
  /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+([:/?#]|$)/u.test(text) ? `https://${text}` : text;

function buildEditor({ title, submit, draft, options, save, onUrl }: EditorForm): Editor {
  const headingId = newId();
  const attributes = { dir: 'auto', autocomplete: 'off' };
  const url = make('input', {
    type: 'url',
    inputmode: 'url',
    spellcheck: 'false',
    autocomplete: 'off',
    name: 'url',
    required: true,
  });
  const name = make('input', { ...attributes, name: 'title' });
  const comment = make('textarea', { ...attributes, name: 'comment', rows: 3 });
  const tags = tagField(draft.tags ?? [], options.ownTags, texts.editor.tags);
  url.value = draft.url ?? '';
  name.value = draft.title ?? '';
  comment.value = draft.comment ?? '';
  const error = make('p', { class: 'error', role: 'alert' });
  const notice = make('p', { class: 'known', role: 'status' });
  const saveButton = make('button', { type: 'submit', class: 'primary' }, submit);
  const element = make(
    'form',
    { class: 'editor', 'aria-labelledby': headingId, novalidate: true },
    make('h2', { id: headingId }, title),
    field(texts.editor.url, url),
    notice,
    make('div', { class: 'pair' }, field(texts.editor.title, name), tags.element),
    field(texts.editor.comment, comment),
    error,
    make('div', { class: 'buttons' }, saveButton, button(texts.cancel, options.onCancel)),
  );
  const read = () => ({ url: url.value, title: name.value, comment: comment.value, tags: tags.read() });
  const submitForm = async () => {
    const address = completeUrl(url.value.trim());
    if (!isWebAddress(address)) {
      refill(error, texts.editor.wrongUrl);
      url.setAttribute('aria-invalid', 'true');
      url.focus();
      return;
    }
    url.removeAttribute('aria-invalid');
    refill(error);
    saveButton.disabled = true;
    refill(saveButton, texts.editor.saving);
    try {
      const saved = await save({ ...read(), url: address });
      options.onSaved(saved);
    } catch (failure) {
      refill(error, hasCode(failure, 'NOT_FOUND') ? texts.editor.gone : describeError(failure));
    } finally {
      saveButton.disabled = false;
      refill(saveButton, submit);
    }
  };
  element.addEventListener('submit', (event) => {
    event.preventDefault();
    void submitForm();
  });
  element.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    if (event.key === 'Escape') options.onCancel();
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submitForm();
    // No key that is typed here is meant for the list.
    event.stopPropagation();
  });
  if (onUrl) {
    url.addEventListener('input', () => onUrl(url.value, notice));
    if (url.value !== '') onUrl(url.value, notice);
  }
  return {
    element,
    read,
    focus: () => (url.value === '' ? url : name).focus(),
    warn: (what) => refill(error, texts.editor[what]),
  };
}

/** Asks, a little after the last key, whether the address is saved already, and offers that bookmark. */
function watchForKnown(onEdit: (bookmark: Bookmark) => void): (url: string, notice: HTMLElement) => void {
  let asking = new AbortController();
  return (text, notice) => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const url = completeUrl(text.trim());
    if (!isWebAddress(url)) return refill(notice);
    const askForKnown = async () => {
      try {
        const { bookmarks } = await ask(() => client.getBookmarks({ url }, { signal }));
        if (signal.aborted) return;
        const [known] = bookmarks;
        if (known === undefined) return refill(notice);
        refill(
          notice,
          make('span', { dir: 'auto' }, texts.editor.known(titleOf(known), formatAgo(known.created_at))),
          button(texts.editor.editKnown, () => onEdit(known)),
        );
      } catch (error) {
        // It is an offer only: where it cannot be made, saving says what is wrong.
        if (!isAbort(error)) refill(notice);
      }
    };
    const timer = setTimeout(askForKnown, 250);
    signal.addEventListener('abort', () => clearTimeout(timer));
  };
}

/** A form for a new bookmark. `onEdit` is called with one of the same address that the reader would rather edit. */
export const addForm = (
  draft: Draft,
  options: EditorOptions,
  onEdit: (bookmark: Bookmark) => void,
): Editor => {
  // The same for every attempt, so that a repeat after a lost response adds nothing twice.
  let last: { text: string; key: string } | undefined;
  return buildEditor({
    title: texts.editor.add,
    submit: texts.editor.save,
    draft,
    options,
    onUrl: watchForKnown(onEdit),
    save(given) {
      const text = JSON.stringify(given);
      if (last?.text !== text)
        last = { text, key: Array.from(crypto.getRandomValues(new Uint32Array(4))).join('-') };
      const { key } = last;
      return ask(() => client.addBookmark(given, { idempotencyKey: key, retryForMs: 15_000 }));
    },
  });
};

/** A form for a bookmark that exists. Only what was changed in it is sent. */
export const editForm = (bookmark: Bookmark, options: EditorOptions): Editor => {
  const before = { ...bookmark, tags: bookmark.tags.map(({ name }) => name) };
  return buildEditor({
    title: texts.editor.edit,
    submit: texts.editor.save,
    draft: before,
    options,
    async save(given) {
      const change = {
        ...(given.url !== before.url && { url: given.url }),
        ...(given.title !== before.title && { title: given.title }),
        ...(given.comment !== before.comment && { comment: given.comment }),
        ...(given.tags.join('\n') !== before.tags.join('\n') && { tags: given.tags }),
      };
      const edited = await ask(() =>
        client.editBookmark({ id: bookmark.id, ...change }, { retryForMs: 15_000 }),
      );
      return { ...bookmark, ...edited };
    },
  });
};
