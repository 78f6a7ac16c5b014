import type { OpenSession } from '../../domain/resources.ts';
import { formatAgo, formatDay } from '../dates.ts';
import { make, refill } from '../dom.ts';
import { moreTexts } from '../more-texts.ts';
import { notifyBriefly } from '../notices.ts';
import { describeFailure } from '../post.ts';
import { ask, client } from '../session.ts';
import { signOut } from '../shell.ts';
import { texts } from '../texts.ts';
import { entry, failure, ignoreGone, section } from './section.ts';

/** Creates the section with the account's sessions, and with buttons to end them. */
export function sessionsSection(): HTMLElement {
  const words = moreTexts.sessions;
  const list = make('ul', { class: 'items' });
  const failed = failure();
  const others = failed.button(words.endOthers, 'danger', async () => {
    const { revoked } = await ask(() => client.revokeOtherSessions());
    notifyBriefly(words.ended(revoked));
    await read();
  });
  const another = failed.button(moreTexts.device.title, 'plain', async () => {
    const { showDeviceCode } = await import('../device-code.ts');
    await showDeviceCode().catch((error) => failed.say(describeFailure(error)));
    await read();
  });
  const draw = (session: OpenSession) => {
    const what = session.app_name ?? session.client ?? words.unknown;
    const end = failed.button(session.is_current ? texts.menu.signOut : words.end, 'plain', async () => {
      if (session.is_current) return signOut();
      await ask(() => client.revokeSession(session.id)).catch(ignoreGone);
      await read();
    });
    if (!session.is_current) end.ariaLabel = words.endNamed(what, formatDay(session.created_at));
    const badge = session.is_current && make('span', { class: 'badge' }, words.current);
    return entry(what, describe(session), end, badge);
  };
  const read = async () => {
    const { sessions } = await ask(() => client.listSessions());
    refill(list, ...sessions.map(draw));
    others.hidden = sessions.length < 2;
  };
  others.hidden = true;
  void read().catch(failed.say);
  return section('sessions', words.title, words.lead, list, failed.element, another, others);
}

function describe({ app_name, client, created_at, last_used_at }: OpenSession): string[] {
  const words = moreTexts.sessions;
  const used = last_used_at === null ? [] : [words.used(formatAgo(last_used_at))];
  const by = app_name !== null && client !== null ? [client] : [];
  return [...by, words.since(formatDay(created_at)), ...used];
}
