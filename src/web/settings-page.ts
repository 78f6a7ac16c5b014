import { make } from './dom.ts';
import { watchSession } from './session.ts';
import { deleteSection, profileSection, saveSection } from './settings/account.ts';
import { appearanceSection } from './settings/appearance.ts';
import { exportSection } from './settings/export.ts';
import { importSection } from './settings/import.ts';
import { keyboardSection } from './settings/keyboard.ts';
import { passkeysSection } from './settings/passkeys.ts';
import { sessionsSection } from './settings/sessions.ts';
import { tokensSection } from './settings/tokens.ts';
import { showShell } from './shell.ts';
import { requireUser } from './start.ts';
import { texts } from './texts.ts';

/** The settings page. */

const user = await requireUser();

const sections = [
  profileSection(user),
  importSection(user),
  exportSection(user),
  saveSection(),
  tokensSection(),
  sessionsSection(),
  passkeysSection(),
  appearanceSection(),
  keyboardSection(),
  deleteSection(user),
];
const index = make(
  'nav',
  { class: 'side index', 'aria-label': texts.menu.settings },
  ...sections.map((each) => make('a', { href: `#${each.id}` }, each.ariaLabel)),
);
const main = make('main', { class: 'settings' }, make('h1', {}, texts.menu.settings), ...sections);
showShell('settings', make('div', { class: 'layout' }, index, main));
document.title = `${texts.menu.settings} · ${texts.name}`;
watchSession();
// The browser has already looked for the section that the address names, but the section did not exist yet.
if (location.hash !== '') document.getElementById(location.hash.slice(1))?.scrollIntoView();
