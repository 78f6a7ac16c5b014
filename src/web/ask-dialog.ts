import { button, buttonRow, make, makeDialog, showDialog } from './dom.ts';
import { texts } from './texts.ts';

/** Dialogs that ask one question. */

/**
 * Asks a question. Resolves with true if the user confirms. `buttonClass` is the class of the button that confirms.
 */
export async function confirm(
  question: string,
  buttonLabel: string,
  buttonClass: string,
  ...fields: HTMLElement[]
): Promise<boolean> {
  const buttons = buttonRow(
    make('button', { type: 'submit', value: 'yes', class: buttonClass }, buttonLabel),
    button(texts.cancel, () => dialog.close()),
  );
  const form = make('form', { method: 'dialog', class: 'stack' }, ...fields, buttons);
  const dialog = makeDialog(question, form);
  return (await showDialog(dialog)) === 'yes';
}

/** Asks the user to confirm a deletion. The dialog shows `fields` above its buttons. */
export const confirmDeletion = (
  question: string,
  buttonLabel: string,
  ...fields: HTMLElement[]
): Promise<boolean> => confirm(question, buttonLabel, 'danger', ...fields);

/**
 * Asks for a text. The dialog shows a field with `initialText`, and `otherFields` below it. Resolves with undefined if
 * the user cancels.
 */
export async function askForText(
  title: string,
  label: string,
  buttonLabel: string,
  initialText: string,
  ...otherFields: HTMLElement[]
): Promise<string | undefined> {
  const input = make('input', {
    value: initialText,
    required: true,
    maxlength: 255,
    dir: 'auto',
    autocomplete: 'off',
    'aria-label': label,
  });
  const isConfirmed = await confirm(title, buttonLabel, 'primary', input, ...otherFields);
  return isConfirmed ? input.value.trim() : undefined;
}
