import type { OpenSession } from '../../domain/resources.ts';
import { formatAgo, formatDay } from '../dates.ts';
import { button, make, refill } from '../dom.ts';
import { describeFailure, hasCode } from '../errors.ts';
import { moreTexts } from '../more-texts.ts';
import { notifyBriefly } from '../notices.ts';
import { ask, client } from '../session.ts';
import { signOut } from '../shell.ts';
import { texts } from '../texts.ts';
import { failure, run, section } from './section.ts';

/** The sessions of the account, with buttons to end them. */
export function sessionsSection(): HTMLElement {
  const words = moreTexts.sessions;
  const list = make('ul', { class: 'items' });
  const failed = failure();
  const others = button(
    words.endOthers,
    () =>
      void run(others, failed, async () => {
        const { revoked } = await ask(() => client.revokeOtherSessions());
        notifyBriefly(words.ended(revoked));
        await read();
      }),
    { kind: 'danger' },
  );
  const end = async (session: OpenSession) => {
    if (session.is_current) return signOut();
    await ask(() => client.revokeSession(session.id)).catch((error: unknown) => {
      if (!hasCode(error, 'NOT_FOUND')) throw error;
    });
    await read();
  };
  const another = button(
    moreTexts.device.title,
    () =>
      void run(another, failed, async () => {
        const { showDeviceCode } = await import('../device-code.ts');
        await showDeviceCode().catch((error) => failed.say(describeFailure(error)));
        await read();
      }),
  );
  const entry = (session: OpenSession) => {
    const what = session.app_name ?? session.client ?? words.unknown;
    const label = session.is_current ? texts.menu.signOut : words.end;
    const ends = button(label, () => void run(ends, failed, () => end(session)));
    if (!session.is_current)
      ends.setAttribute('aria-label', words.endNamed(what, formatDay(session.created_at)));
    return make(
      'li',
      {},
      make(
        'div',
        {},
        make('strong', { dir: 'auto' }, what),
        session.is_current && make('span', { class: 'badge' }, words.current),
        make('p', { class: 'hint' }, describe(session)),
      ),
      ends,
    );
  };
  const read = async () => {
    const { sessions } = await ask(() => client.listSessions());
    refill(list, ...sessions.map(entry));
    others.hidden = sessions.length < 2;
  };
  others.hidden = true;
  void read().catch(failed.say);
  return section('sessions', words.title, words.lead, list, failed.element, another, others);
}

function describe({ app_name, client, created_at, last_used_at }: OpenSession): string {
  const words = moreTexts.sessions;
  const used = last_used_at === null ? [] : [words.used(formatAgo(last_used_at))];
  const by = app_name !== null && client !== null ? [client] : [];
  return [...by, words.since(formatDay(created_at)), ...used].join(' · ');
}
