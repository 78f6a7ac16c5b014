import type { Profile } from '../../domain/resources.ts';
import { button, field, make, newId, put, refill } from '../dom.ts';
import { describeFault } from '../errors.ts';
import { moreTexts } from '../more-texts.ts';
import { texts } from '../texts.ts';
import { download, failure, section } from './section.ts';
import { type Outcome, type Preview, type Report, startTransfer, type Transfer } from './transfer.ts';

/** Imports a file: choose it, see what is in it, decide what happens to the existing bookmarks, import. */
export function importSection(profile: Profile): HTMLElement {
  const words = moreTexts.import;
  const failed = failure();
  const stage = make('div', { class: 'stage' });
  let transfer: Transfer | undefined;
  let file: File | undefined;

  const stop = () => {
    transfer?.end();
    transfer = undefined;
  };
  const [nameId, hintId] = [newId(), newId()];
  const input = make('input', {
    type: 'file',
    class: 'hidden',
    accept: '.html,.htm,.json,.csv,.xml,.txt',
    'aria-labelledby': nameId,
    'aria-describedby': hintId,
  });
  input.addEventListener('change', () => read(input.files?.[0]));
  const drop = make(
    'label',
    { class: 'drop' },
    input,
    make('strong', { id: nameId }, words.choose),
    make('span', { class: 'hint', id: hintId }, words.formats),
  );
  drop.addEventListener('dragover', (event) => {
    event.preventDefault();
    drop.classList.add('over');
  });
  drop.addEventListener('dragleave', () => drop.classList.remove('over'));
  drop.addEventListener('drop', (event) => {
    event.preventDefault();
    drop.classList.remove('over');
    read(event.dataTransfer?.files[0]);
  });
  const folders = make('input', { type: 'checkbox', checked: true, id: newId(), onchange: () => read(file) });
  const withFolders = make('label', { class: 'check', for: folders.id }, folders, words.folders);

  const read = (chosen: File | undefined) => {
    if (chosen === undefined) return;
    file = chosen;
    failed.clear();
    stop();
    transfer = startTransfer(onReport);
    transfer.send({ kind: 'read', file, foldersAsTags: folders.checked });
    refill(stage, make('p', { role: 'status' }, words.reading(chosen.name)));
  };
  let onProgress = (_done: number) => {};
  const onReport = (report: Report) => {
    switch (report.kind) {
      case 'preview':
        return refill(stage, previewOf(report.preview));
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

  let preview: Preview | undefined;
  const previewOf = (found: Preview): HTMLElement => {
    preview = found;
    const merge = make('input', { type: 'radio', name: 'mode', value: 'merge', checked: true, id: newId() });
    const replace = make('input', { type: 'radio', name: 'mode', value: 'replace', id: newId() });
    const typed = make('input', { autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
    const confirm = field(words.typeToReplace(words.replaceWord, profile.bookmark_count), typed);
    confirm.hidden = true;
    const { bookmark_limit: cap, bookmark_count: present } = profile;
    const free = Math.max(0, (cap ?? 0) - present);
    const warning =
      cap !== null &&
      found.addresses > free &&
      make('p', { class: 'known' }, words.mayNotFit(present, cap, free));
    for (const radio of [merge, replace]) {
      radio.addEventListener('change', () => {
        confirm.hidden = !replace.checked;
      });
    }
    const onsubmit = (event: SubmitEvent) => {
      event.preventDefault();
      if (replace.checked && typed.value.trim().toLowerCase() !== words.replaceWord) {
        failed.say(words.notConfirmed(words.replaceWord));
        return typed.focus();
      }
      // In both modes, the account has a bookmark for each address afterwards.
      if (cap !== null && found.addresses > cap) return failed.say(words.tooMany(found.addresses, cap));
      failed.clear();
      begin(replace.checked ? 'replace' : 'merge', found.count);
    };
    return make(
      'form',
      { class: 'card', onsubmit, novalidate: true },
      make('h3', {}, words.holds(found.count, words.names[found.format])),
      make(
        'ul',
        { class: 'facts' },
        make('li', {}, words.tags(found.tags)),
        found.combined > 0 && make('li', {}, words.combined(found.combined)),
        found.leftOut.length > 0 && make('li', {}, words.leftOut(found.leftOut.length)),
        found.refused.length > 0 && make('li', {}, words.willRefuse(found.refused.length)),
      ),
      found.folders.length > 0 && folderList(found.folders),
      ...skippedList(willSkip(found)),
      make(
        'ol',
        { class: 'first' },
        ...found.first.map(({ title, url }) => make('li', { dir: 'auto' }, title || url)),
      ),
      make(
        'fieldset',
        {},
        make('legend', {}, words.mode),
        make('label', { class: 'check', for: merge.id }, merge, words.merge),
        make('label', { class: 'check', for: replace.id }, replace, words.replace),
      ),
      warning,
      confirm,
      make(
        'div',
        { class: 'buttons' },
        make('button', { type: 'submit', class: 'primary' }, words.start(found.count)),
        button(texts.cancel, () => {
          stop();
          input.value = '';
          refill(stage);
        }),
      ),
    );
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
  const outcomeOf = (outcome: Outcome): HTMLElement => {
    const refused = [
      ...outcome.errors.map(({ url, error }) => ({ url: url ?? '', title: '', reason: error })),
      ...leftOutOf(preview),
    ];
    const card = make(
      'div',
      { class: 'card', role: 'status' },
      make('h3', {}, words.imported(outcome.imported)),
      outcome.skipped > 0 && make('p', {}, words.skipped(outcome.skipped)),
      make('p', {}, make('a', { href: '/' }, words.see)),
    );
    if (refused.length > 0) put(card, ...refusedTable(refused));
    return card;
  };
  return section('import', words.title, words.lead, drop, withFolders, failed.element, stage);
}

type Folders = Preview['folders'];

/** The folders, and the tags that they become. */
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

const leftOutOf = (preview: Preview | undefined): Refused[] =>
  (preview?.leftOut ?? []).map((entry) => ({ ...entry, reason: moreTexts.import.noWebPage }));

/** The entries that will not be imported, with reasons. */
const willSkip = (found: Preview): Refused[] => [
  ...found.refused.map(({ url, error }) => ({ url: url ?? '', title: '', reason: error })),
  ...leftOutOf(found),
];

/** Shows the first entries, and a button that downloads all of them. */
function skippedList(skipped: readonly Refused[]): HTMLElement[] {
  if (skipped.length === 0) return [];
  const line = ({ url, title, reason }: Refused) => make('li', { dir: 'auto' }, `${url || title}: ${reason}`);
  return [make('ul', { class: 'facts' }, ...skipped.slice(0, 10).map(line)), downloadButton(skipped)];
}

interface Refused {
  url: string;
  title: string;
  reason: string;
}

/** The number of rows to show. The file has all of them. */
const SHOWN = 50;

function refusedTable(refused: readonly Refused[]): HTMLElement[] {
  const words = moreTexts.import;
  const row = ({ url, title, reason }: Refused) =>
    make('tr', {}, make('td', { dir: 'auto' }, title || url), make('td', {}, reason));
  return [
    make('h4', {}, words.refused(refused.length)),
    make(
      'div',
      { class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': words.refused(refused.length) },
      make(
        'table',
        {},
        make(
          'thead',
          {},
          make('tr', {}, make('th', { scope: 'col' }, words.what), make('th', { scope: 'col' }, words.why)),
        ),
        make('tbody', {}, ...refused.slice(0, SHOWN).map(row)),
      ),
    ),
    downloadButton(refused),
  ];
}

const downloadButton = (refused: readonly Refused[]): HTMLElement =>
  make(
    'div',
    { class: 'buttons' },
    button(moreTexts.import.downloadRefused, () => download('refused.csv', toCsv(refused))),
  );

/** Spreadsheets run a cell that begins like a formula. A quote before it makes it text. */
const cell = (text: string): string =>
  `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

const toCsv = (refused: readonly Refused[]): Blob =>
  new Blob(
    [['url', 'title', 'reason'], ...refused.map(({ url, title, reason }) => [url, title, reason])].map(
      (cells) => `${cells.map(cell).join(',')}\r\n`,
    ),
    { type: 'text/csv' },
  );
