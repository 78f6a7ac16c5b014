import type { Account } from '../../domain/resources.ts';
import { button, buttonRow, make, refill } from '../dom.ts';
import { describeFault } from '../errors.ts';
import { moreTexts } from '../more-texts.ts';
import { download, failure, section } from './section.ts';
import { startTransfer } from './transfer.ts';

/** Creates the section that downloads all bookmarks as a file. */
export function exportSection(account: Account): HTMLElement {
  const words = moreTexts.export;
  const failed = failure();
  const stage = make('div', { class: 'stage', role: 'status' });
  const begin = (format: 'json' | 'html' | 'csv') => {
    failed.say(undefined);
    const bar = make('progress', {
      max: Math.max(1, account.bookmark_count),
      value: 0,
      'aria-label': words.title,
    });
    const label = make('span', {}, words.running(0));
    refill(stage, bar, label);
    const transfer = startTransfer((report) => {
      if (report.kind === 'progress') {
        bar.value = report.done;
        refill(label, words.running(report.done));
        return;
      }
      transfer.end();
      refill(stage);
      if (report.kind === 'fault') failed.say(describeFault(report.fault));
      if (report.kind !== 'file') return;
      download(`bookmarks-${new Date().toISOString().slice(0, 10)}.${format}`, report.file);
      refill(stage, make('span', {}, words.done(report.count)));
    });
    transfer.send({ kind: 'export', format });
  };
  const buttons = buttonRow(
    button(words.json, () => begin('json')),
    button(words.html, () => begin('html')),
    button(words.csv, () => begin('csv')),
  );
  return section('export', words.title, words.lead, buttons, failed.element, stage);
}
