import {
  button,
  field,
  icon,
  make,
  makeDialog,
  makeForm,
  put,
  refill,
  showDialog,
  submitButton,
} from './dom.ts';
import { moreTexts } from './more-texts.ts';
import { describeFailure, hasPasskeys, hasStatus, post } from './post.ts';
import { texts } from './texts.ts';

/** Signing in: the whole page for a new visitor, or a dialog above the page when the session has ended. */

/** An invite code, or the longer code that signs in another device. */
const CODE = /^[A-Z0-9]{8}([A-Z0-9]{4})?$/;

/** Exchanges a code for a session. Returns the reason if that fails, otherwise undefined. */
async function exchange(code: string): Promise<string | undefined> {
  if (!CODE.test(code)) return moreTexts.signIn.malformedCode;
  try {
    await post(code.length === 8 ? '/web/login/invite' : '/web/login/device/exchange', { code });
    return undefined;
  } catch (error) {
    return hasStatus(error, 400, 404) ? moreTexts.signIn.wrongCode : describeFailure(error);
  }
}

/**
 * Makes a button that signs in with a passkey, and the line for its errors. Makes nothing if the browser or the address
 * does not support passkeys.
 */
function passkeyButton(onSignedIn: () => void): HTMLElement[] {
  if (!hasPasskeys()) return [];
  const errorLine = make('p', { class: 'error', role: 'alert' });
  const run = async () => {
    errorLine.replaceChildren();
    submit.disabled = true;
    try {
      const { signInByPasskey } = await import('./passkeys.ts');
      if (await signInByPasskey()) return onSignedIn();
      refill(errorLine, moreTexts.signIn.noPasskey);
    } catch (error) {
      refill(errorLine, hasStatus(error, 404) ? moreTexts.signIn.noPasskey : describeFailure(error));
    } finally {
      submit.disabled = false;
    }
  };
  const submit = button(moreTexts.signIn.byPasskey, () => void run());
  return [submit, errorLine];
}

/** The form for signing in: a field for a code, and a link to the provider if the service has one. */
interface SignInForm {
  elements: HTMLElement[];
  input: HTMLInputElement;
  /** Shows why the user was not signed in. */
  say(reason: string | undefined): void;
}

/**
 * Makes the form. Calls `onSignedIn` when a session exists. With `isAgain`, the provider opens in a new tab, because
 * leaving the page would lose unsaved input.
 */
function signInForm(onSignedIn: () => void, returnTo: string, isAgain: boolean): SignInForm {
  const provider = document.querySelector<HTMLMetaElement>('meta[name="provider"]')?.content;
  const input = make('input', {
    name: 'code',
    autocomplete: 'one-time-code',
    autocapitalize: 'characters',
    spellcheck: 'false',
    maxlength: 20,
    required: true,
  });
  const error = make('p', { class: 'error', role: 'alert' });
  const say = (reason: string | undefined) => refill(error, reason);
  const submit = submitButton(moreTexts.signIn.title, provider ? 'plain' : 'primary');
  const onSubmit = async () => {
    submit.disabled = true;
    const failure = await exchange(input.value.replace(/[\s-]/g, '').toUpperCase());
    submit.disabled = false;
    say(failure);
    if (failure === undefined) onSignedIn();
    else input.focus();
  };
  const code = field(moreTexts.signIn.code, input, moreTexts.signIn.codeHint);
  const elements = [makeForm('stack', onSubmit, code, error, submit), ...passkeyButton(onSignedIn)];
  if (provider === undefined) return { elements, input, say };
  const link = make(
    'a',
    {
      class: 'button primary',
      href: `/login?return_to=${encodeURIComponent(returnTo)}`,
      ...(isAgain && { target: '_blank' }),
    },
    moreTexts.signIn.by(provider),
  );
  return { elements: [link, make('p', { class: 'or' }, moreTexts.signIn.or), ...elements], input, say };
}

/** True if the service runs on the user's own machine. */
export const isOwnMachine = (): boolean => ['127.0.0.1', 'localhost', '[::1]'].includes(location.hostname);

/**
 * Shows the page for signing in. Resolves when the user has signed in. `linked` is the code of a link. The service
 * prints such a link when it starts on the user's own machine. On that machine, the code signs the user in immediately.
 * On other machines, the code only fills in the field, so that a link cannot sign somebody in to another person's
 * account.
 */
export async function showSignIn(linked: string | undefined): Promise<void> {
  const isUsed = linked !== undefined && isOwnMachine();
  const failure = isUsed ? await exchange(linked) : undefined;
  if (isUsed && failure === undefined) return;
  // If the user opens a link with a code in this tab, only the fragment changes. So the page reloads itself.
  addEventListener('hashchange', () => location.reload(), { once: true });
  await new Promise<void>((resolve) => {
    const { elements, input, say } = signInForm(resolve, location.pathname + location.search, false);
    const main = make(
      'main',
      { class: 'sign-in' },
      make('div', { class: 'brand' }, icon('mark')),
      make('h1', {}, texts.name),
      make('p', { class: 'lead' }, moreTexts.signIn.lead),
      ...elements,
    );
    document.body.replaceChildren(main);
    document.title = `${moreTexts.signIn.title} · ${texts.name}`;
    if (failure === moreTexts.signIn.wrongCode) say(moreTexts.signIn.usedLink);
    else {
      say(failure);
      input.value = linked ?? '';
    }
    input.focus();
  });
}

/** Creates an offer to sign in again in a new tab, for actions that require a recent sign-in. */
export const freshLogin = (reason: string): HTMLElement =>
  make(
    'p',
    { class: 'known' },
    make('span', {}, texts.errors.denied(reason)),
    make('a', { href: '/login?fresh=true&return_to=/settings', target: '_blank' }, moreTexts.signIn.fresh),
    make('span', {}, moreTexts.signIn.freshDone),
  );

let asked: Promise<boolean> | undefined;

/**
 * Shows a dialog that asks the user to sign in again. Resolves with false if the user closes the dialog. Several calls
 * at the same time share one dialog.
 */
export function askToSignIn(): Promise<boolean> {
  asked ??= showSignInDialog().finally(() => {
    asked = undefined;
  });
  return asked;
}

async function showSignInDialog(): Promise<boolean> {
  // A `BroadcastChannel` does not receive its own messages. This dialog sends through a channel of its own, so that the
  // listeners of `signals` (`session.ts`) in this tab get the message too.
  const channel = new BroadcastChannel('session');
  const dialog = makeDialog(moreTexts.signIn.again, make('p', {}, moreTexts.signIn.ended));
  const end = () => dialog.close('yes');
  const onSignedIn = () => {
    channel.postMessage('signed-in');
    end();
  };
  channel.onmessage = ({ data }) => data === 'signed-in' && end();
  const { elements, input } = signInForm(onSignedIn, '/', true);
  put(
    dialog,
    ...elements,
    button(texts.cancel, () => dialog.close()),
  );
  const answer = showDialog(dialog);
  input.focus();
  const isSignedIn = (await answer) === 'yes';
  channel.close();
  return isSignedIn;
}
