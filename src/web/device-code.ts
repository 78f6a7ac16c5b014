import { formatClock } from './dates.ts';
import { button, drawPath, field, make, makeDialog, refill, showDialog } from './dom.ts';
import { moreTexts } from './more-texts.ts';
import { describeFailure, post } from './post.ts';
import { client } from './session.ts';
import { texts } from './texts.ts';

/** Two dialogs. One signs in another device. The other warns before a sign-out that would lock the user out. */

interface DeviceCode {
  code: string;
  link: string;
  expires_in_seconds: number;
  qr: { size: number; path: string };
}

/** How often the dialog looks for a new session, in ms. */
const WATCH_MS = 4_000;

const readSessions = async () => (await client.listSessions({ retryForMs: 0 })).sessions;

/**
 * Requests a code, and shows it with its link and QR code until it expires. Rejects if the service refuses the request.
 */
export async function showDeviceCode(): Promise<void> {
  const words = moreTexts.device;
  const { code, link, expires_in_seconds, qr } = await post<DeviceCode>('/web/login/device', {});
  const known = new Set((await readSessions()).map(({ id }) => id));
  const lifetimeMs = expires_in_seconds * 1_000;
  /** The code in groups of four characters. */
  const shownCode = code.replace(/.{4}(?=.)/g, '$&-');
  const address = make('input', { readonly: true, value: link, onfocus: () => address.select() });
  const codeView = make(
    'div',
    { class: 'stack' },
    drawPath(qr.size, qr.path, { class: 'qr', role: 'img', 'aria-label': words.qr }),
    make('p', { class: 'code' }, shownCode),
    field(words.link, address),
    make('p', { class: 'hint' }, words.until(formatClock(Date.now() + lifetimeMs))),
  );
  const dialog = makeDialog(
    words.title,
    make('p', {}, words.lead),
    codeView,
    button(texts.close, () => dialog.close()),
  );
  const expiryNote = make('p', { role: 'status' }, words.expired);
  const expiryTimer = setTimeout(() => end(expiryNote), lifetimeMs);
  const watchTimer = setInterval(() => void watch().catch(() => {}), WATCH_MS);
  const end = (note?: HTMLElement) => {
    clearTimeout(expiryTimer);
    clearInterval(watchTimer);
    if (note) refill(codeView, note);
  };
  /** Says so when another device has signed in. */
  const watch = async () => {
    const found = (await readSessions()).find(({ id }) => !known.has(id));
    if (found === undefined) return;
    const name = found.client ?? moreTexts.sessions.unknown;
    end(make('p', { role: 'status' }, words.used(name)));
  };
  await showDialog(dialog);
  end();
}

/**
 * Asks for confirmation before a sign-out that would lock the user out. Offers to sign in another device first.
 * Resolves with true if the user confirms.
 */
export async function confirmSignOut(): Promise<boolean> {
  const words = moreTexts.lockOut;
  const errorText = make('p', { class: 'error', role: 'alert' });
  const deviceButton = button(
    moreTexts.device.title,
    () => showDeviceCode().catch((error) => refill(errorText, describeFailure(error))),
    { kind: 'primary' },
  );
  const dialog = makeDialog(
    words.title,
    make('p', {}, words.lead),
    errorText,
    deviceButton,
    button(words.confirm, () => dialog.close('yes'), { kind: 'danger' }),
    button(texts.cancel, () => dialog.close()),
  );
  const answer = showDialog(dialog);
  deviceButton.focus();
  return (await answer) === 'yes';
}
