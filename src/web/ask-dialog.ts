import { button, buttonRow, make, makeDialog, showDialog } from './dom.ts';
import { texts } from './texts.ts';

/** Dialogs that ask one question. */

/** Asks a question. Resolves with true if the user confirms. */
async function confirm(
  question: string,
  submit: string,
  kind: string,
  ...fields: HTMLElement[]
): Promise<boolean> {
  const buttons = buttonRow(
    make('button', { type: 'submit', value: 'yes', class: kind }, submit),
    button(texts.cancel, () => dialog.close()),
  );
  const form = make('form', { method: 'dialog', class: 'stack' }, ...fields, buttons);
  const dialog = makeDialog(question, form);
  return (await showDialog(dialog)) === 'yes';
}

/** Asks the user to confirm a deletion. */
export const confirmDeletion = (question: string, submit: string): Promise<boolean> =>
  confirm(question, submit, 'danger');

/** Asks for a text. Resolves with undefined if the user cancels. `others` are further fields of the dialog. */
export async function askForText(
  title: string,
  label: string,
  submit: string,
  value: string,
  ...others: HTMLElement[]
): Promise<string | undefined> {
  const input = make('input', {
    value,
    required: true,
    maxlength: 255,
    dir: 'auto',
    autocomplete: 'off',
    'aria-label': label,
  });
  return (await confirm(title, submit, 'primary', input, ...others)) ? input.value.trim() : undefined;
}
