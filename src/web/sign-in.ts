import { button, field, icon, make, refill } from './dom.ts';
import { texts } from './texts.ts';

/** Signing in: the whole page for who comes anew, a dialog above the page for whose session has ended. */

/** Of an invite, or of a page that signs in another device. */
const CODE = /^[A-Z0-9]{8}([A-Z0-9]{4})?$/;

/** Exchanges a code for a session; says why not, or undefined. */
async function exchange(code: string): Promise<string | undefined> {
  if (!CODE.test(code)) return texts.signIn.malformedCode;
  try {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch('/web/login/invite', {
      method: 'POST',
      headers,
      body: JSON.stringify({ code }),
    });
    if (response.ok) return undefined;
    if (response.status === 404 || response.status === 400) return texts.signIn.wrongCode;
    return response.status === 429 ? texts.errors.limited : texts.errors.unavailable;
  } catch {
    return texts.errors.lost;
  }
}

/** Whether this page's address is one that passkeys can belong to: an IP address is none. */
export const addressHasPasskeys = (): boolean => !/^\[|^[\d.]+$/.test(location.hostname);

/** Whether this browser and this address have passkeys. */
export const hasPasskeys = (): boolean =>
  addressHasPasskeys() &&
  'PublicKeyCredential' in window &&
  'parseRequestOptionsFromJSON' in PublicKeyCredential;

/** A button that signs in by a passkey, where browser and address have them. */
function passkeyButton(onSignedIn: () => void): HTMLElement[] {
  if (!hasPasskeys()) return [];
  const failed = make('p', { class: 'error', role: 'alert' });
  const run = async () => {
    refill(failed);
    submit.disabled = true;
    try {
      const { signInByPasskey } = await import('./passkeys.ts');
      if (await signInByPasskey()) return onSignedIn();
      refill(failed, texts.signIn.noPasskey);
    } catch (error) {
      const { status } = error instanceof Response ? error : { status: undefined };
      if (status === 404) refill(failed, texts.signIn.noPasskey);
      else if (status === 429) refill(failed, texts.errors.limited);
      else refill(failed, status === undefined ? texts.errors.lost : texts.errors.unavailable);
    } finally {
      submit.disabled = false;
    }
  };
  const submit = button(texts.signIn.byPasskey, () => void run());
  return [submit, failed];
}

/** The name of the provider, where the service has one: the document says so. */
const providerName = (): string | undefined =>
  document.querySelector<HTMLMetaElement>('meta[name="provider"]')?.content;

/** The form: a link to the provider, and a field for a code. `onSignedIn` is called once a session exists. */
function signInForm(onSignedIn: () => void, returnTo: string, isAgain: boolean): HTMLElement[] {
  const provider = providerName();
  const input = make('input', {
    name: 'code',
    autocomplete: 'one-time-code',
    autocapitalize: 'characters',
    spellcheck: 'false',
    maxlength: 20,
    required: true,
  });
  const error = make('p', { class: 'error', role: 'alert' });
  const submit = make(
    'button',
    { type: 'submit', class: provider ? 'plain' : 'primary' },
    texts.signIn.submit,
  );
  const onsubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    submit.disabled = true;
    const failure = await exchange(input.value.replace(/[\s-]/g, '').toUpperCase());
    submit.disabled = false;
    refill(error, failure);
    if (failure === undefined) onSignedIn();
    else input.focus();
  };
  const form = make(
    'form',
    { class: 'sign-in-code', onsubmit: (event: SubmitEvent) => void onsubmit(event), novalidate: true },
    field(texts.signIn.code, input, texts.signIn.codeHint),
    error,
    submit,
  );
  if (provider === undefined) return [form, ...passkeyButton(onSignedIn)];
  const link = make(
    'a',
    {
      class: 'button primary',
      href: `/login?return_to=${encodeURIComponent(returnTo)}`,
      // Beside the page, whose texts would be lost.
      ...(isAgain && { target: '_blank' }),
    },
    texts.signIn.by(provider),
  );
  return [link, make('p', { class: 'or' }, texts.signIn.or), form, ...passkeyButton(onSignedIn)];
}

/**
 * A link may carry a code behind its `#`, which no server is sent: the one that the service prints when it is started
 * on one's own machine. It signs in at once on this machine only; elsewhere it fills in the field, so that nobody is
 * signed in to another one's account by following a link.
 */
function takeLinkedCode(): string | undefined {
  const code = /^#code=([A-Z0-9]{8,12})$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(history.state, '', location.pathname + location.search);
  return code;
}

const isOwnMachine = (): boolean => ['127.0.0.1', 'localhost', '[::1]'].includes(location.hostname);

/** Drops the code of a link that is followed by who is signed in already. */
export const dropLinkedCode = (): void => void takeLinkedCode();

/** Shows the page for signing in; resolves once that is done. */
export async function showSignIn(): Promise<void> {
  const linked = takeLinkedCode();
  if (linked !== undefined && isOwnMachine() && (await exchange(linked)) === undefined) return;
  // A link with a code that is opened in this very tab changes the hash only.
  addEventListener('hashchange', () => location.reload(), { once: true });
  await new Promise<void>((resolve) => {
    const form = signInForm(resolve, location.pathname + location.search, false);
    const main = make(
      'main',
      { class: 'sign-in' },
      make('div', { class: 'brand' }, icon('mark')),
      make('h1', {}, texts.name),
      make('p', { class: 'lead' }, texts.signIn.lead),
      ...form,
    );
    document.body.replaceChildren(main);
    document.title = `${texts.signIn.title} · ${texts.name}`;
    const input = main.querySelector('input')!;
    if (linked !== undefined) input.value = linked;
    input.focus();
  });
}

/** Offers to sign in anew, beside the page, to who has to show that it is them. */
export const freshLogin = (reason: string): HTMLElement =>
  make(
    'p',
    { class: 'known' },
    make('span', {}, texts.errors.denied(reason)),
    make('a', { href: '/login?fresh=true&return_to=/settings', target: '_blank' }, texts.signIn.fresh),
    make('span', {}, texts.signIn.freshDone),
  );

let asked: Promise<boolean> | undefined;

/** Asks in place to sign in again; false where the dialog was closed instead. All who ask meanwhile share the dialog. */
export function askToSignIn(): Promise<boolean> {
  asked ??= showDialog().finally(() => {
    asked = undefined;
  });
  return asked;
}

function showDialog(): Promise<boolean> {
  const channel = new BroadcastChannel('session');
  return new Promise<boolean>((resolve) => {
    const heading = make('h2', { id: 'sign-in-again' }, texts.signIn.again);
    const dialog = make('dialog', { class: 'sign-in again', 'aria-labelledby': 'sign-in-again' });
    const end = (isSignedIn: boolean) => {
      channel.close();
      dialog.close();
      dialog.remove();
      resolve(isSignedIn);
    };
    const onSignedIn = () => {
      channel.postMessage('signed-in');
      end(true);
    };
    channel.onmessage = ({ data }) => data === 'signed-in' && end(true);
    const cancel = make(
      'button',
      { type: 'button', class: 'plain', onclick: () => end(false) },
      texts.cancel,
    );
    const form = signInForm(onSignedIn, '/', true);
    refill(dialog, heading, make('p', {}, texts.signIn.ended), ...form, cancel);
    dialog.addEventListener('cancel', () => end(false));
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector('input')!.focus();
  });
}
