import { type Html, html } from './html.ts';
import type { Page } from './page.ts';
import type { SignInFault } from './sign-in-error.ts';

/** The sign-in pages. */

const loginLink = (returnTo: string): string => `/login?${new URLSearchParams({ return_to: returnTo })}`;

/** Renders a link that looks like a button. */
const renderButton = (address: string, text: string, isMain = false): Html =>
  html`<a class="button${isMain ? ' main' : ''}" href="${address}">${text}</a>`;

/** Two forms: one signs in with a code, the other with a passkey. Afterwards the page reloads with the new session. */
const FORMS = html`
  <form data-to="/web/login/invite" data-to-device="/web/login/device/exchange" data-body="{}">
    <label for="code">Invite code or code from another device</label>
    <p><input id="code" name="code" required maxlength="20" autocomplete="one-time-code" spellcheck="false"></p>
    <p role="alert"></p>
    <button disabled>Sign in with the code</button>
  </form>
  <form data-to="/web/login/passkey" hidden>
    <p role="alert"></p>
    <button disabled>Sign in with a passkey</button>
  </form>`;

/** Returns the page with the ways to sign in: a code, a passkey, and the provider if there is one. */
export const signInPage = (providerName: string | undefined, returnTo: string): Page => ({
  status: 200,
  title: 'Sign in',
  isActive: true,
  body: html`
    ${
      providerName === undefined
        ? undefined
        : html`<p class="choices">${renderButton(loginLink(returnTo), `Continue with ${providerName}`, true)}</p>
    <p>Or with a code:</p>`
    }
    ${FORMS}`,
});

/** What the page shows about an app that asks for a session, and what the page sends when the person approves. */
interface AppRequest {
  /** The name that the app gives itself. It is not verified. */
  name: string;
  redirectUri: string;
  /** Where the browser goes if the person declines: back to the app. */
  declineUrl: string;
  /** The e-mail address of the account that the app could use. */
  email: string;
  /** The body of `POST /web/login/app`. */
  body: object;
  /** Whether `redirectUri` is on the person's own computer. */
  isLoopback: boolean;
}

/** Returns the page that asks whether an app may have a session. The answer is not remembered for the next time. */
export const approvalPage = ({
  name,
  redirectUri,
  declineUrl,
  email,
  body,
  isLoopback,
}: AppRequest): Page => ({
  status: 200,
  title: `Let “${name}” use your bookmarks?`,
  isActive: true,
  body: html`
    <p class="facts">The app calls itself <strong>${name}</strong>. It could read, add, change and delete everything in the account
      <strong>${email}</strong> until you end its session in the settings.</p>
    <p class="facts">${isLoopback ? 'It runs on this computer at' : 'You would continue to'} <code>${redirectUri}</code>.</p>
    <p>Approve this only if you have just started it yourself. Decline it if somebody else sent you to this page.</p>
    <form data-to="/web/login/app" data-body="${JSON.stringify(body)}">
      <p role="alert"></p>
      <p class="choices"><button class="main" disabled>Approve</button> ${renderButton(declineUrl, 'Decline')}</p>
    </form>
    <noscript><p>This page needs JavaScript.</p></noscript>`,
});

interface FaultText {
  status: number;
  title: string;
  text: string;
  /** After how many seconds to try again. */
  retryAfterSeconds?: number;
}

const TRY_LATER = 'Your other devices stay signed in. Please try again in a minute.';

/** The texts of the page for each fault. `{}` stands for the provider's name. */
const FAULT_TEXTS: Record<SignInFault | 'unavailable', FaultText> = {
  unreachable: { status: 503, title: '{} cannot be reached', text: TRY_LATER, retryAfterSeconds: 30 },
  slow: { status: 503, title: '{} takes too long to respond', text: TRY_LATER, retryAfterSeconds: 30 },
  unavailable: {
    status: 503,
    title: 'Signing in is not possible at the moment',
    text: TRY_LATER,
    retryAfterSeconds: 5,
  },
  invalid: {
    status: 503,
    title: '{} sent an invalid response',
    text: 'You were not signed in. Please try again. If it fails again, tell the person who runs this service.',
    retryAfterSeconds: 30,
  },
  client: {
    status: 503,
    title: '{} does not accept this service',
    text: 'Only the person who runs this service can fix that. Your other devices stay signed in.',
    retryAfterSeconds: 300,
  },
  denied: {
    status: 403,
    title: 'You were not signed in',
    text: '{} says that the sign-in was cancelled or is not allowed.',
  },
  callback: {
    status: 400,
    title: 'This sign-in is over',
    text: 'It was already completed, took longer than ten minutes, or was started in another browser. Nothing has changed.',
  },
  unverified: {
    status: 403,
    title: 'Your address is not verified',
    text: '{} has not verified your e-mail address. Verify it there, then sign in again.',
  },
  domain: {
    status: 403,
    title: 'Your e-mail address is not allowed here',
    text: 'This service accepts only addresses of certain domains.',
  },
  uninvited: {
    status: 403,
    title: 'There is no invite for you',
    text: 'Your first sign-in needs an invite for the e-mail address that you use at {}. Ask the person who runs this service.',
  },
  taken: {
    status: 403,
    title: 'There is already an account with this address',
    text: 'Sign in as you did before, then link {} in the settings. Your address alone does not give access.',
  },
  linked: {
    status: 403,
    title: 'This sign-in belongs to another account',
    text: 'Your identity at {} is linked to another account here, or this account is linked to another identity there. Nothing has changed.',
  },
  'other-person': {
    status: 403,
    title: 'You signed in as another person',
    text: 'To confirm your identity, sign in at {} as the owner of this account. Nothing has changed.',
  },
  'no-session': {
    status: 403,
    title: 'Your session has ended',
    text: 'It ended while you were at {}. Sign in again, then link {} in the settings.',
  },
  suspended: {
    status: 403,
    title: 'Your account is suspended',
    text: 'Nothing in it is deleted. Ask the person who runs this service.',
  },
};

/** Returns the page that says what happened and what to do, with a link to try again. */
export function faultPage(
  fault: SignInFault | 'unavailable',
  providerName: string | undefined,
  returnTo: string,
): Page {
  const { status, title, text, retryAfterSeconds } = FAULT_TEXTS[fault];
  const name = providerName ?? 'The provider';
  return {
    status,
    title: title.replaceAll('{}', name),
    body: html`
    <p>${text.replaceAll('{}', name)}</p>
    <p class="choices">${renderButton(loginLink(returnTo), 'Try again', true)} ${renderButton('/', 'Leave')}</p>`,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/**
 * Returns the page for a malformed request. `message` names the parameter and its rule. A correct app never sends a
 * malformed request.
 */
export const badRequestPage = (message: string): Page => ({
  status: 400,
  title: 'This address is incomplete',
  body: html`<p class="facts">${message}.</p><p>If an app sent you here, tell its developers.</p>`,
});

/** Returns the page for too many requests from one client address. */
export const limitedPage = (retryAfterSeconds: number): Page => ({
  status: 429,
  title: 'Too many attempts',
  body: html`<p>Please wait ${String(retryAfterSeconds)} seconds, then load this page again.</p>`,
  retryAfterSeconds,
});
