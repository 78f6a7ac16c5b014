import { type Html, html } from './html.ts';
import type { Page } from './page.ts';
import type { SignInFault } from './sign-in-error.ts';

/** What people read while they sign in. */

const loginLink = (returnTo: string): string => `/login?${new URLSearchParams({ return_to: returnTo })}`;

const chooseLink = (address: string, text: string, isMain = false): Html =>
  html`<a class="button${isMain ? ' main' : ''}" href="${address}">${text}</a>`;

/** Sends a code or a passkey's answer; the page is loaded again with the session that it opened. */
const FORMS = html`
  <form data-to="/web/login/invite" data-body="{}">
    <label for="code">Invite code or code from another device</label>
    <p><input id="code" name="code" required maxlength="20" autocomplete="one-time-code" spellcheck="false"></p>
    <p role="alert"></p>
    <button disabled>Sign in with the code</button>
  </form>
  <form data-to="/web/login/passkey" hidden>
    <p role="alert"></p>
    <button disabled>Sign in with a passkey</button>
  </form>`;

/** How people may sign in: by the provider, where there is one, and by an invite. */
export const signInPage = (providerName: string | undefined, returnTo: string): Page => ({
  status: 200,
  title: 'Sign in',
  isActive: true,
  body: html`
    ${
      providerName === undefined
        ? undefined
        : html`<p class="choices">${chooseLink(loginLink(returnTo), `Continue with ${providerName}`, true)}</p>
    <p>Or with a code that you were given:</p>`
    }
    ${FORMS}`,
});

/** An app that asks for a session: what the page shows, and what approving sends. */
interface AppRequest {
  /** What the app calls itself; nobody has checked it. */
  name: string;
  redirectUri: string;
  /** The address with which declining returns to the app. */
  declineUrl: string;
  /** Whose bookmarks the app would reach. */
  email: string;
  /** The body of `POST /web/login/app`. */
  body: object;
  isLoopback: boolean;
}

/** Names the app and asks. Nothing is remembered: the next time the page asks again. */
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
      <strong>${email}</strong>, until you end its session in the settings.</p>
    <p class="facts">${isLoopback ? 'It runs on this computer, and is reached at' : 'You would go on to'} <code>${redirectUri}</code>.</p>
    <p>Approve only if you have just started this yourself. Nobody who asks you to open this page needs you to approve it.</p>
    <form data-to="/web/login/app" data-body="${JSON.stringify(body)}">
      <p role="alert"></p>
      <p class="choices"><button class="main" disabled>Approve</button> ${chooseLink(declineUrl, 'Decline')}</p>
    </form>
    <noscript><p>Approving needs JavaScript.</p></noscript>`,
});

interface FaultText {
  status: number;
  title: string;
  text: string;
  /** Seconds after which another try may succeed. */
  retryAfterSeconds?: number;
}

const AWAY = 'You stay signed in wherever you are. Please try again in a minute.';

/** What a person is told; `{}` stands for the provider's name. */
const FAULT_TEXTS: Record<SignInFault | 'unavailable', FaultText> = {
  unreachable: { status: 503, title: '{} cannot be reached', text: AWAY, retryAfterSeconds: 30 },
  slow: { status: 503, title: '{} takes too long', text: AWAY, retryAfterSeconds: 30 },
  unavailable: { status: 503, title: 'Nobody can sign in at the moment', text: AWAY, retryAfterSeconds: 5 },
  invalid: {
    status: 503,
    title: '{} did not respond as it should',
    text: 'Its response could not be trusted, so nobody was signed in. Please try again; if it stays so, tell whoever runs this service.',
    retryAfterSeconds: 30,
  },
  client: {
    status: 503,
    title: '{} does not accept this service',
    text: 'Only whoever runs this service can mend that. You stay signed in wherever you are.',
    retryAfterSeconds: 300,
  },
  denied: {
    status: 403,
    title: 'You were not signed in',
    text: '{} says that signing in was cancelled or is not allowed.',
  },
  callback: {
    status: 400,
    title: 'This sign-in is over',
    text: 'It was finished already, took longer than ten minutes, or was begun in another browser. Nothing has changed.',
  },
  unverified: {
    status: 403,
    title: 'Your address is not verified',
    text: '{} does not say that your e-mail address is yours. Verify it there, then sign in again.',
  },
  domain: {
    status: 403,
    title: 'Your address may not sign in here',
    text: 'Whoever runs this service has opened it to addresses of certain domains only.',
  },
  uninvited: {
    status: 403,
    title: 'There is no invite for you',
    text: 'A first sign-in needs an invite for the address that {} knows you by. Ask whoever runs this service.',
  },
  taken: {
    status: 403,
    title: 'An account has this address already',
    text: 'Sign in to it as you did before, then link {} in its settings. Your address alone does not open it.',
  },
  linked: {
    status: 403,
    title: 'This sign-in belongs to another account',
    text: 'Whoever you are at {} is linked to another account here, or this account to somebody else there. Nothing has changed.',
  },
  'other-person': {
    status: 403,
    title: 'You signed in as somebody else',
    text: 'To confirm who you are, sign in at {} as the person of this account. Nothing has changed.',
  },
  'no-session': {
    status: 403,
    title: 'Your session has ended',
    text: 'It ended while {} was asked. Sign in again, then link it in the settings.',
  },
  suspended: {
    status: 403,
    title: 'Your account is suspended',
    text: 'Nothing in it is deleted. Ask who runs this service.',
  },
};

/** Says what happened and what helps, and leads back to a new try. */
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
    <p class="choices">${chooseLink(loginLink(returnTo), 'Try again', true)} ${chooseLink('/', 'Leave')}</p>`,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/** A request that no page of this service and no well-made app sends: names the parameter and the rule. */
export const badRequestPage = (message: string): Page => ({
  status: 400,
  title: 'This address is not complete',
  body: html`<p class="facts">${message}.</p><p>If an app sent you here, its developers have to mend it.</p>`,
});

/** Too many requests of one address. */
export const limitedPage = (retryAfterSeconds: number): Page => ({
  status: 429,
  title: 'Too many tries',
  body: html`<p>Please wait ${String(retryAfterSeconds)} seconds, then load this page again.</p>`,
  retryAfterSeconds,
});
