import type { Account } from '../../domain/resources.ts';
import { button, buttonRow, check, field, make, makeForm, newId, refill, submitButton } from '../dom.ts';
import { describeFault } from '../errors.ts';
import { moreTexts } from '../more-texts.ts';
import { texts } from '../texts.ts';
import { download, failure, section } from './section.ts';
import { type Outcome, type Preview, type Report, startTransfer, type Transfer } from './transfer.ts';

/**
 * The section that imports a file. The user chooses a file, sees what is in it, decides what happens to the existing
 * bookmarks, and starts the import.
 */
export function importSection(account: Account): HTMLElement {
  const words = moreTexts.import;
  const failed = failure();
  const stage = make('div', { class: 'stage' });
  let transfer: Transfer | undefined;
  let file: File | undefined;
  let preview: Preview | undefined;

  const stop = () => {
    transfer?.end();
    transfer = undefined;
  };
  const [nameId, hintId] = [newId(), newId()];
  // The style sheet puts the field over its label, so the user can also drop a file on the label.
  const input = make('input', {
    type: 'file',
    accept: '.html,.htm,.json,.csv,.xml,.txt',
    'aria-labelledby': nameId,
    'aria-describedby': hintId,
    onchange: () => read(input.files?.[0]),
  });
  const drop = make(
    'label',
    { class: 'drop' },
    input,
    make('strong', { id: nameId }, words.choose),
    make('span', { class: 'hint', id: hintId }, words.formats),
  );
  const folders = make('input', { type: 'checkbox', checked: true, onchange: () => read(file) });

  const read = (chosen: File | undefined) => {
    if (chosen === undefined) return;
    file = chosen;
    failed.say(undefined);
    stop();
    transfer = startTransfer(onReport);
    const hasBookmarks = account.bookmark_count > 0;
    transfer.send({ kind: 'read', file, foldersAsTags: folders.checked, hasBookmarks });
    refill(stage, make('p', { role: 'status' }, words.reading(chosen.name)));
  };
  /** The line of the preview that says how many addresses the account has already. */
  const known = make('p', { class: 'hint', role: 'status' });
  let onProgress = (_done: number) => {};
  const onReport = (report: Report) => {
    switch (report.kind) {
      case 'preview':
        preview = report.preview;
        refill(known);
        return refill(stage, previewOf(preview));
      case 'known':
        return refill(known, words.known(report.count));
      case 'progress':
        return onProgress(report.done);
      case 'outcome':
        stop();
        input.value = '';
        if (report.fault) failed.say(describeFault(report.fault));
        return refill(stage, outcomeOf(report.outcome));
      case 'unreadable':
        refill(stage);
        return failed.say(words.unreadable(report.message));
      case 'fault':
        refill(stage);
        return failed.say(describeFault(report.fault));
    }
  };

  const previewOf = (found: Preview): HTMLElement => {
    const merge = make('input', { type: 'radio', name: 'mode', checked: true });
    const replace = make('input', { type: 'radio', name: 'mode' });
    const typed = make('input', { autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
    const confirm = field(words.typeToReplace(words.replaceWord, account.bookmark_count), typed);
    confirm.hidden = true;
    const { bookmark_limit: cap, bookmark_count: present } = account;
    const free = Math.max(0, (cap ?? 0) - present);
    const warning =
      cap !== null &&
      found.addresses > free &&
      make('p', { class: 'known' }, words.mayNotFit(present, cap, free));
    const submit = () => {
      if (replace.checked && typed.value.trim().toLowerCase() !== words.replaceWord) {
        failed.say(words.notConfirmed(words.replaceWord));
        return typed.focus();
      }
      // After an import in either mode, the account has at least one bookmark for each address in the file. So a file
      // with more addresses than the limit never fits.
      if (cap !== null && found.addresses > cap) return failed.say(words.tooMany(found.addresses, cap));
      failed.say(undefined);
      begin(replace.checked ? 'replace' : 'merge', found.count);
    };
    const form = makeForm(
      'card',
      submit,
      make('h3', {}, words.holds(found.count, words.names[found.format])),
      make(
        'ul',
        { class: 'facts' },
        make('li', {}, words.tags(found.tags)),
        found.combined > 0 && make('li', {}, words.combined(found.combined)),
        found.leftOut.length > 0 && make('li', {}, words.leftOut(found.leftOut.length)),
        found.refused.length > 0 && make('li', {}, words.willRefuse(found.refused.length)),
        found.unknownFields.length > 0 && make('li', {}, words.unknownFields(found.unknownFields.join(', '))),
        found.guessedEncoding && make('li', {}, words.guessedEncoding(found.guessedEncoding)),
      ),
      known,
      found.changes.length > 0 && changeList(found.changes),
      found.folders.length > 0 && folderList(found.folders),
      ...refusedTable(refusedOf(found.refused, found)),
      make(
        'ol',
        { class: 'first' },
        ...found.first.map(({ title, url }) => make('li', { dir: 'auto' }, title || url)),
      ),
      make(
        'fieldset',
        {},
        make('legend', {}, words.mode),
        check(merge, words.merge),
        check(replace, words.replace),
      ),
      warning,
      confirm,
      buttonRow(
        submitButton(words.start(found.count - found.refused.length)),
        button(texts.cancel, () => {
          stop();
          input.value = '';
          refill(stage);
        }),
      ),
    );
    form.addEventListener('change', () => {
      confirm.hidden = !replace.checked;
    });
    return form;
  };
  const begin = (mode: 'merge' | 'replace', count: number) => {
    const label = make('p', { role: 'status' }, words.running(0, count));
    // A replacement is one request, so its progress is unknown.
    const bar = make('progress', {
      'aria-label': words.title,
      ...(mode === 'merge' && { max: count, value: 0 }),
    });
    onProgress = (done) => {
      bar.value = done;
      refill(label, words.running(done, count));
    };
    refill(stage, label, bar, make('p', { class: 'hint' }, words.stay));
    transfer?.send({ kind: 'import', mode });
  };
  const outcomeOf = ({ imported, skipped, errors }: Outcome): HTMLElement => {
    const refused = refusedOf(errors, preview);
    return make(
      'div',
      { class: 'card', role: 'status' },
      make('h3', {}, words.imported(imported)),
      skipped > 0 && make('p', {}, words.skipped(skipped)),
      make('p', {}, make('a', { href: '/' }, words.see)),
      refused.length > 0 && make('h4', {}, words.refused(refused.length)),
      ...refusedTable(refused),
    );
  };
  return section(
    'import',
    words.title,
    words.lead,
    drop,
    check(folders, words.folders),
    failed.element,
    stage,
  );
}

type Folders = Preview['folders'];

/** Creates the list of the file's folders. It names the tag that each folder becomes. */
function folderList(folders: Folders): HTMLElement {
  const words = moreTexts.import;
  const line = ({ folder, tag, bookmarks }: Folders[number]) =>
    make('li', { dir: 'auto' }, words.folder(folder.join(' › '), tag, bookmarks));
  const rest = folders.length - SHOWN;
  return make(
    'details',
    {},
    make('summary', {}, words.foldersToTags(folders.length)),
    make(
      'ul',
      { class: 'facts' },
      ...folders.slice(0, SHOWN).map(line),
      rest > 0 && make('li', {}, words.andMore(rest)),
    ),
  );
}

/** Creates the list of what differs from the file in entries that are imported. */
function changeList(changes: Preview['changes']): HTMLElement {
  const words = moreTexts.import;
  const line = ({ url, change, text }: Preview['changes'][number]) =>
    make('li', { dir: 'auto' }, `${url}: ${words.changes[change]} (${text})`);
  const rest = changes.length - SHOWN;
  return make(
    'details',
    {},
    make('summary', {}, words.changed(changes.length)),
    make(
      'ul',
      { class: 'facts' },
      ...changes.slice(0, SHOWN).map(line),
      rest > 0 && make('li', {}, words.andMore(rest)),
    ),
  );
}

interface Refused {
  url: string;
  title: string;
  reason: string;
}

/** Returns the entries that are not imported: those that the service refuses, and those that are left out. */
const refusedOf = (
  errors: readonly { url: string | null; error: string }[],
  preview: Preview | undefined,
): Refused[] => [
  ...errors.map(({ url, error }) => ({ url: url ?? '', title: '', reason: error })),
  ...(preview?.leftOut ?? []).map((entry) => ({
    ...entry,
    reason: moreTexts.import.omissions[entry.reason],
  })),
];

/** The number of rows to show. The table that the user can download has all rows. */
const SHOWN = 50;

function refusedTable(refused: readonly Refused[]): HTMLElement[] {
  if (refused.length === 0) return [];
  const words = moreTexts.import;
  const row = ({ url, title, reason }: Refused) =>
    make('tr', {}, make('td', { dir: 'auto' }, url || title), make('td', {}, reason));
  const head = [words.what, words.why].map((text) => make('th', { scope: 'col' }, text));
  return [
    make(
      'div',
      { class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': words.refused(refused.length) },
      make(
        'table',
        {},
        make('thead', {}, make('tr', {}, ...head)),
        make('tbody', {}, ...refused.slice(0, SHOWN).map(row)),
      ),
    ),
    buttonRow(button(words.downloadRefused, () => void downloadTable(refused))),
  ];
}

/** Downloads a table of the entries that are not imported. The writer is loaded only now, because few users need it. */
async function downloadTable(refused: readonly Refused[]): Promise<void> {
  const { writeCsvHead, writeCsvRow } = await import('../../formats/write-csv.ts');
  const rows = refused.map(({ url, title, reason }) => writeCsvRow([url, title, reason]));
  download(
    'refused.csv',
    new Blob([writeCsvHead(['url', 'title', 'reason']), ...rows], { type: 'text/csv' }),
  );
}
