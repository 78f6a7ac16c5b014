import { button, make } from './dom.ts';
import { texts } from './texts.ts';

/** Dialogs that ask one question. */

/** Shows a dialog. Resolves with true if the user confirms. */
function showDialog(
  label: string,
  submit: string,
  kind: string,
  ...content: HTMLElement[]
): Promise<boolean> {
  return new Promise((resolve) => {
    const form = make(
      'form',
      { method: 'dialog', class: 'ask' },
      make('h2', { id: 'ask' }, label),
      ...content,
      make(
        'div',
        { class: 'buttons' },
        make('button', { type: 'submit', value: 'yes', class: kind }, submit),
        button(texts.cancel, () => dialog.close()),
      ),
    );
    const dialog = make('dialog', { 'aria-labelledby': 'ask' }, form);
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Asks the user to confirm a deletion. */
export const confirmDeletion = (question: string, submit: string): Promise<boolean> =>
  showDialog(question, submit, 'danger');

/** Asks for a text. Resolves with undefined if the user cancels. `others` are additional fields of the dialog. */
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
  const isGiven = await showDialog(title, submit, 'primary', input, ...others);
  return isGiven ? input.value.trim() : undefined;
}
