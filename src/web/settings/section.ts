import { make, newId, refill } from '../dom.ts';
import { describeError } from '../errors.ts';

/** A part of the settings: a heading, what it is for, and its content. */
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

/** Where a part says what went wrong; empty while nothing did. */
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

/** Runs something that a form or a button asks for: the button is off meanwhile, a failure is said. */
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

/** Gives a file to the reader. */
export function download(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  const link = make('a', { href, download: name });
  link.click();
  // The browser has taken it when its own task is over.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
