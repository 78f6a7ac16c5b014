import { formatAgo, formatDay } from '../dates.ts';
import { button, make, refill } from '../dom.ts';
import { moreTexts } from '../more-texts.ts';
import { notifyBriefly } from '../notices.ts';
import { addPasskey, describePasskeyFailure } from '../passkeys.ts';
import { post } from '../session.ts';
import { addressHasPasskeys, hasPasskeys } from '../sign-in.ts';
import { failure, run, section } from './section.ts';

interface Passkey {
  id: string;
  name: string | null;
  created_at: string;
  last_used_at: string | null;
}

/** The passkeys of the account. */
export function passkeysSection(): HTMLElement {
  const words = moreTexts.passkeys;
  if (!addressHasPasskeys()) return section('passkeys', words.title, words.needsName);
  const list = make('ul', { class: 'items' });
  const failed = failure();
  const say = (error: unknown) => failed.say(describePasskeyFailure(error));
  const add = button(
    words.add,
    () =>
      void run(add, failed, async () => {
        const isAdded = await addPasskey().catch(say);
        if (isAdded) notifyBriefly(words.added);
        else if (isAdded === false) failed.say(words.notAdded);
        await read();
      }),
  );
  const entry = ({ id, name, created_at, last_used_at }: Passkey) => {
    const what = name ?? words.unknown;
    const remove = button(
      words.remove,
      () => void run(remove, failed, () => post('/web/login/passkey/remove', { id }).then(read, say)),
      { kind: 'danger' },
    );
    remove.setAttribute('aria-label', words.removeNamed(what, formatDay(created_at)));
    const facts = [words.since(formatDay(created_at))];
    if (last_used_at !== null) facts.push(words.used(formatAgo(last_used_at)));
    return make(
      'li',
      {},
      make('div', {}, make('strong', { dir: 'auto' }, what), make('p', { class: 'hint' }, facts.join(' · '))),
      remove,
    );
  };
  const read = async () => {
    const { passkeys } = await post<{ passkeys: Passkey[] }>('/web/login/passkey/list', {});
    refill(list, ...passkeys.map(entry));
  };
  void read().catch(say);
  return section(
    'passkeys',
    words.title,
    hasPasskeys() ? words.lead : words.unsupported,
    list,
    failed.element,
    hasPasskeys() && add,
  );
}
