import { formatClock } from './dates.ts';
import { button, field, make, refill } from './dom.ts';
import { describeFailure } from './errors.ts';
import { moreTexts } from './more-texts.ts';
import { post } from './session.ts';
import { texts } from './texts.ts';

/** Signs in another device: a dialog that shows a code, its link and its QR code until the code expires. */

interface DeviceCode {
  code: string;
  link: string;
  expires_in_seconds: number;
  qr: { size: number; path: string };
}

const SVG = 'http://www.w3.org/2000/svg';

/** Draws the QR code, dark on light in every theme. Many cameras cannot read an inverted code. */
function drawQr({ size, path }: DeviceCode['qr']): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${size} ${size}`);
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', moreTexts.device.qr);
  svg.classList.add('qr');
  const dark = document.createElementNS(SVG, 'path');
  dark.setAttribute('d', path);
  svg.append(dark);
  return svg;
}

/** Requests a code and shows it. Rejects if the service returns none. */
export async function showDeviceCode(): Promise<void> {
  const words = moreTexts.device;
  const { code, link, expires_in_seconds, qr } = await post<DeviceCode>('/web/login/device', {});
  const address = make('input', { readonly: true, value: link, onfocus: () => address.select() });
  const shown = make(
    'div',
    { class: 'device' },
    drawQr(qr),
    make('p', { class: 'code' }, code.replace(/(.{4})(?=.)/g, '$1-')),
    field(words.link, address),
    make('p', { class: 'hint' }, words.until(formatClock(Date.now() + expires_in_seconds * 1_000))),
  );
  const dialog = make(
    'dialog',
    { class: 'sign-in', 'aria-labelledby': 'device' },
    make('h2', { id: 'device' }, words.title),
    make('p', {}, words.lead),
    shown,
    button(texts.close, () => dialog.close()),
  );
  const expire = setTimeout(
    () => refill(shown, make('p', { role: 'status' }, words.expired)),
    expires_in_seconds * 1_000,
  );
  const closed = new Promise<void>((resolve) => {
    dialog.addEventListener('close', () => {
      clearTimeout(expire);
      dialog.remove();
      resolve();
    });
  });
  document.body.append(dialog);
  dialog.showModal();
  await closed;
}

/** Asks for confirmation before a sign-out that would lock the user out. */
export function confirmSignOut(): Promise<boolean> {
  const words = moreTexts.lockOut;
  return new Promise((resolve) => {
    const failed = make('p', { class: 'error', role: 'alert' });
    const answer = (isConfirmed: boolean) => {
      resolve(isConfirmed);
      dialog.close();
    };
    const other = button(
      moreTexts.device.title,
      () => showDeviceCode().catch((error) => refill(failed, describeFailure(error))),
      { kind: 'primary' },
    );
    const dialog = make(
      'dialog',
      { class: 'sign-in', 'aria-labelledby': 'lock-out' },
      make('h2', { id: 'lock-out' }, words.title),
      make('p', {}, words.lead),
      failed,
      other,
      button(words.confirm, () => answer(true), { kind: 'danger' }),
      button(texts.cancel, () => answer(false)),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(false);
    });
    document.body.append(dialog);
    dialog.showModal();
    other.focus();
  });
}
