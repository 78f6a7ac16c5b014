import { button, field, icon, make, refill } from './dom.ts';
import { texts } from './texts.ts';

/** Signing in: the whole page for a new visitor, or a dialog above the page when the session has ended. */

/** An invite code, or the longer code that signs in another device. */
const CODE = /^[A-Z0-9]{8}([A-Z0-9]{4})?$/;

/** Exchanges a code for a session. Returns the reason if that fails, otherwise undefined. */
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

/** True if passkeys can belong to the page's host. They cannot belong to an IP address. */
export const addressHasPasskeys = (): boolean => !/^\[|^[\d.]+$/.test(location.hostname);

/** True if this browser and this address support passkeys. */
export const hasPasskeys = (): boolean =>
  addressHasPasskeys() &&
  'PublicKeyCredential' in window &&
  'parseRequestOptionsFromJSON' in PublicKeyCredential;

/** Makes a button that signs in with a passkey, if the browser and the address support passkeys. */
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

/** Returns the provider's name from the document, if the service has a provider. */
const providerName = (): string | undefined =>
  document.querySelector<HTMLMetaElement>('meta[name="provider"]')?.content;

/** Makes the form: a link to the provider, and a field for a code. Calls `onSignedIn` once a session exists. */
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
      // Opens a new tab, because leaving the page would lose unsaved input.
      ...(isAgain && { target: '_blank' }),
    },
    texts.signIn.by(provider),
  );
  return [link, make('p', { class: 'or' }, texts.signIn.or), form, ...passkeyButton(onSignedIn)];
}

/**
 * Takes the code from a link's fragment (`#code=…`), which browsers do not send to servers. The service prints such a
 * link when it starts on the user's own machine. Only there does the code sign in at once. Elsewhere it only fills in
 * the field, so that following a link signs nobody in to another person's account.
 */
function takeLinkedCode(): string | undefined {
  const code = /^#code=([A-Z0-9]{8,12})$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(history.state, '', location.pathname + location.search);
  return code;
}

const isOwnMachine = (): boolean => ['127.0.0.1', 'localhost', '[::1]'].includes(location.hostname);

/** Removes a link's code if the user is already signed in. */
export const dropLinkedCode = (): void => void takeLinkedCode();

/** Shows the page for signing in. Resolves once the user has signed in. */
export async function showSignIn(): Promise<void> {
  const linked = takeLinkedCode();
  if (linked !== undefined && isOwnMachine() && (await exchange(linked)) === undefined) return;
  // Opening a link with a code in this tab only changes the fragment, so the page reloads itself.
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

/** Offers to sign in again in a new tab, for actions that require a recent sign-in. */
export const freshLogin = (reason: string): HTMLElement =>
  make(
    'p',
    { class: 'known' },
    make('span', {}, texts.errors.denied(reason)),
    make('a', { href: '/login?fresh=true&return_to=/settings', target: '_blank' }, texts.signIn.fresh),
    make('span', {}, texts.signIn.freshDone),
  );

let asked: Promise<boolean> | undefined;

/**
 * Asks the user to sign in again in a dialog. Resolves with false if they close it. Concurrent calls share one
 * dialog.
 */
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
