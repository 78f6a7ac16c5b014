import { randomId } from '../client/requester.ts';
import type { Bookmark, Tag } from '../domain/resources.ts';
import { completeUrl, findUrl } from '../domain/typed-url.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { formatAgo } from './dates.ts';
import { button, buttonRow, field, make, makeForm, newId, refill, submitButton } from './dom.ts';
import { describeError, hasCode, isAbort } from './errors.ts';
import { keepWaiting } from './offline-store.ts';
import { titleOf } from './row.ts';
import { ask, client, unreached, userEmail } from './session.ts';
import { tagField } from './tag-field.ts';
import { texts } from './texts.ts';

/** The form that adds or edits a bookmark. It keeps what the user has typed until they save or cancel. */

export interface Draft {
  url?: string;
  title?: string;
  comment?: string;
  tags?: string[];
}

/**
 * Reads the draft of a bookmark from the parameters of the page's address. Android apps share an address either in the
 * parameter `url` or inside the parameter `text`.
 */
export function readDraft(): { url: string; title: string } {
  const parameters = new URLSearchParams(location.search);
  const url = parameters.get('url') || findUrl(parameters.get('text') ?? '') || '';
  return { url, title: parameters.get('title') ?? '' };
}

interface EditorOptions {
  ownTags: () => readonly Tag[];
  onSaved(bookmark: Bookmark): void;
  onCancel(): void;
  /** Called if the service cannot be reached and the user chooses to save a new bookmark later. */
  onKept?(): void;
}

export interface Editor {
  readonly element: HTMLFormElement;
  focus(): void;
  /** Returns the current input. */
  read(): Required<Draft>;
  /**
   * Warns that the bookmark was changed elsewhere (`changed` is its new version) or deleted elsewhere (undefined) while
   * the user edits it. After the warning, saving overwrites that version.
   */
  warn(changed: Bookmark | undefined): void;
}

interface EditorForm {
  title: string;
  draft: Draft;
  options: EditorOptions;
  save(draft: Required<Draft>, signal: AbortSignal): Promise<Bookmark>;
  /**
   * Stores the input, so that it is saved later. Throws if the browser's storage is full. Without this function, the
   * form stays open and waits for the connection.
   */
  keep?(draft: Required<Draft>): void;
  /**
   * Called when the text of the address field changes, and once at the start if the field has a text. `notice` is the
   * element below the field.
   */
  onUrl?(url: string, notice: HTMLElement): void;
}

/** Thrown if a bookmark was changed elsewhere before it could be saved. */
class ChangedElsewhere extends Error {
  readonly bookmark: Bookmark;
  constructor(bookmark: Bookmark) {
    super();
    this.bookmark = bookmark;
  }
}

const describeFault = (error: unknown): string =>
  hasCode(error, 'NOT_FOUND') ? texts.editor.gone : describeError(error);

const isWebAddress = (text: string): boolean => parseWebUrl(text) !== null;

function buildEditor({ title, draft, options, save, keep, onUrl }: EditorForm): Editor {
  const attributes = { dir: 'auto', autocomplete: 'off' };
  const url = make('input', {
    type: 'url',
    spellcheck: 'false',
    autocomplete: 'off',
    name: 'url',
    required: true,
    value: draft.url,
  });
  const name = make('input', { ...attributes, name: 'title', value: draft.title });
  const comment = make('textarea', { ...attributes, name: 'comment', rows: 3 }, draft.comment);
  const tags = tagField(draft.tags ?? [], options.ownTags, texts.tags.title);
  const error = make('div', { class: 'error', role: 'alert' });
  const urlError = make('p', { class: 'error', role: 'alert', id: newId() });
  url.setAttribute('aria-describedby', urlError.id);
  const notice = make('p', { class: 'known', role: 'status' });
  const saveButton = submitButton(texts.editor.save);
  const element = makeForm(
    'editor',
    () => submit(),
    make('h2', {}, title),
    make('div', { class: 'field' }, field(texts.editor.url, url), urlError),
    notice,
    make('div', { class: 'pair' }, field(texts.editor.title, name), tags.element),
    field(texts.editor.comment, comment),
    error,
    buttonRow(saveButton, button(texts.cancel, options.onCancel)),
  );
  element.ariaLabel = title;
  const read = () => ({ url: url.value, title: name.value, comment: comment.value, tags: tags.read() });
  const submit = async () => {
    const address = completeUrl(url.value);
    if (!isWebAddress(address)) {
      refill(urlError, texts.editor.wrongUrl);
      url.ariaInvalid = 'true';
      url.focus();
      return;
    }
    url.ariaInvalid = null;
    refill(urlError);
    refill(error);
    saveButton.disabled = true;
    refill(saveButton, texts.editor.saving);
    const input = { ...read(), url: address };
    const attempt = new AbortController();
    const { signal } = attempt;
    const offerToWait = () =>
      refill(error, texts.editor.unreached, ' ', button(texts.editor.later, waitForConnection));
    for (const path of ['/bookmarks/add', '/bookmarks/edit'])
      unreached.addEventListener(path, offerToWait, { once: true, signal });
    const waitForConnection = () => {
      attempt.abort();
      try {
        if (keep === undefined) {
          refill(error, texts.editor.waiting);
          addEventListener('online', () => element.isConnected && void submit(), { once: true });
          return;
        }
        keep(input);
        options.onKept?.();
      } catch {
        refill(error, texts.editor.noSpace);
      }
    };
    try {
      const saved = await save(input, signal);
      options.onSaved(saved);
    } catch (failure) {
      if (isAbort(failure)) return;
      if (failure instanceof ChangedElsewhere) warn(failure.bookmark);
      else refill(error, describeFault(failure));
    } finally {
      attempt.abort();
      saveButton.disabled = false;
      refill(saveButton, texts.editor.save);
    }
  };
  const initial = JSON.stringify(read());
  /** Closes the form. Asks first if the user has changed anything. */
  const cancel = async () => {
    if (JSON.stringify(read()) !== initial) {
      const { confirmDeletion } = await import('./ask-dialog.ts');
      if (!(await confirmDeletion(texts.editor.discardAsk, texts.editor.discard))) return;
    }
    options.onCancel();
  };
  const warn = (changed: Bookmark | undefined) => {
    if (changed === undefined) return refill(error, texts.editor.gone);
    const here = read();
    const there = { ...changed, tags: changed.tags.map(({ name }) => name) };
    const { labels } = texts.editor;
    /** A line for each field that has different values here and there. */
    const lines = (['url', 'title', 'comment', 'tags'] as const)
      .map((key) => [labels[key], String(here[key]), String(there[key])] as const)
      .filter(([, mine, theirs]) => mine !== theirs)
      .map((line) => make('p', { dir: 'auto' }, texts.editor.differs(...line)));
    refill(error, texts.editor.changed, ...lines);
  };
  element.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    if (event.key === 'Escape') {
      event.preventDefault();
      void cancel();
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void submit();
    // Keys that the user types in this form must not trigger the shortcuts of the page.
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
    warn,
  };
}

/** How long the form waits after the last key before it looks for a bookmark with the same address. */
const CHECK_DELAY_MS = 250;

/**
 * Returns a function to call whenever the text of the address field changes. If no other call follows within
 * `CHECK_DELAY_MS`, the function checks whether the user already has a bookmark with this address. If so, it offers to
 * edit that bookmark.
 */
function watchForKnown(onEdit: (bookmark: Bookmark) => void): (url: string, notice: HTMLElement) => void {
  let lastCheck = new AbortController();
  return (text, notice) => {
    lastCheck.abort();
    lastCheck = new AbortController();
    const { signal } = lastCheck;
    const url = completeUrl(text);
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
        // The check is optional, so its errors are not shown. If the service is unavailable, saving reports that.
        if (!isAbort(error)) refill(notice);
      }
    };
    const timer = setTimeout(askForKnown, CHECK_DELAY_MS);
    signal.addEventListener('abort', () => clearTimeout(timer));
  };
}

/**
 * Makes a form for a new bookmark. `onEdit` is called if the user chooses to edit an existing bookmark with the same
 * address.
 */
export const addForm = (
  draft: Draft,
  options: EditorOptions,
  onEdit: (bookmark: Bookmark) => void,
): Editor => {
  // If the user saves the same input again, the request has the same idempotency key. So the bookmark is not added
  // twice if the first response was lost.
  let last: { text: string; key: string } | undefined;
  const keyOf = (input: Required<Draft>) => {
    const text = JSON.stringify(input);
    if (last?.text !== text) last = { text, key: randomId() };
    return last.key;
  };
  return buildEditor({
    title: texts.editor.add,
    draft,
    options,
    onUrl: watchForKnown(onEdit),
    save: (input, signal) =>
      ask(() => client.addBookmark(input, { idempotencyKey: keyOf(input), retryForMs: 15_000, signal })),
    keep: (bookmark) => keepWaiting(userEmail(), { key: keyOf(bookmark), bookmark }),
  });
};

/**
 * Makes a form for an existing bookmark. Saving sends only the changed fields. If the bookmark was changed elsewhere
 * meanwhile, the service refuses to save, and the form warns. If the user saves again after the warning, the fields are
 * saved.
 */
export const editForm = (bookmark: Bookmark, options: EditorOptions): Editor => {
  const before = { ...bookmark, tags: bookmark.tags.map(({ name }) => name) };
  let version = bookmark.updated_at;
  const editor = buildEditor({
    title: texts.editor.edit,
    draft: before,
    options,
    async save(input, signal) {
      const change = {
        ...(input.url !== before.url && { url: input.url }),
        ...(input.title !== before.title && { title: input.title }),
        ...(input.comment !== before.comment && { comment: input.comment }),
        ...(input.tags.join('\n') !== before.tags.join('\n') && { tags: input.tags }),
      };
      const edit = { id: bookmark.id, if_updated_at: version, ...change };
      try {
        const edited = await ask(() => client.editBookmark(edit, { retryForMs: 15_000, signal }));
        return { ...bookmark, ...edited };
      } catch (error) {
        if (hasCode(error, 'CONFLICT')) {
          const { bookmarks } = await ask(() => client.getBookmarks({ id: bookmark.id }));
          const [changed] = bookmarks;
          if (changed !== undefined) {
            version = changed.updated_at;
            throw new ChangedElsewhere(changed);
          }
        }
        throw error;
      }
    },
  });
  return {
    ...editor,
    warn(changed) {
      version = changed?.updated_at ?? version;
      editor.warn(changed);
    },
  };
};
