import { make, newId, refill } from '../dom.ts';
import { describeError } from '../errors.ts';

/** A section of the settings: heading, purpose, content. */
export function section(
  id: string,
  title: string,
  lead: string,
  ...content: (Node | false | undefined)[]
): HTMLElement {
  const headingId = newId();
  return make(
    'section',
    { id, 'aria-labelledby': headingId },
    make('h2', { id: headingId }, title),
    make('p', { class: 'lead' }, lead),
    ...content,
  );
}

/** The place in a section for an error. It is empty while there is none. */
export interface Failure {
  readonly element: HTMLElement;
  say(error: unknown): void;
  clear(): void;
}

export function failure(): Failure {
  const element = make('p', { class: 'error', role: 'alert' });
  return {
    element,
    say: (error) => refill(element, typeof error === 'string' ? error : describeError(error)),
    clear: () => refill(element),
  };
}

/** Runs the action of a form or a button. Disables the button meanwhile, and shows an error. */
export async function run(
  button: HTMLButtonElement,
  failed: Failure,
  work: () => Promise<void>,
): Promise<void> {
  failed.clear();
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    failed.say(error);
  } finally {
    button.disabled = false;
  }
}

/** Downloads a file. */
export function download(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  const link = make('a', { href, download: name });
  link.click();
  // The browser reads the URL in this task. It can be revoked in the next one.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
