import { formatAgo, formatDay } from '../dates.ts';
import { make, refill } from '../dom.ts';
import { moreTexts } from '../more-texts.ts';
import { notifyBriefly } from '../notices.ts';
import { addPasskey, describePasskeyFailure } from '../passkeys.ts';
import { addressHasPasskeys, hasPasskeys, post } from '../post.ts';
import { isOwnMachine } from '../sign-in.ts';
import { entry, failure, section } from './section.ts';

interface Passkey {
  id: string;
  name: string | null;
  created_at: string;
  last_used_at: string | null;
}

/** Links to this page at `localhost`, where a service on the user's own machine has passkeys. */
function localhostLink(): HTMLElement {
  const address = new URL(location.href);
  address.hostname = 'localhost';
  return make('a', { href: address.href }, address.host);
}

/** Creates the section with the account's passkeys. */
export function passkeysSection(): HTMLElement {
  const words = moreTexts.passkeys;
  if (!addressHasPasskeys()) {
    return isOwnMachine()
      ? section('passkeys', words.title, words.openByName, localhostLink())
      : section('passkeys', words.title, words.needsName);
  }
  const list = make('ul', { class: 'items' });
  const failed = failure(describePasskeyFailure);
  const add = failed.button(words.add, 'plain', async () => {
    if (!(await addPasskey())) return;
    notifyBriefly(words.added);
    await read();
  });
  const draw = ({ id, name, created_at, last_used_at }: Passkey) => {
    const what = name ?? words.unknown;
    const remove = failed.button(words.remove, 'danger', async () => {
      await post('/web/login/passkey/remove', { id });
      await read();
    });
    remove.ariaLabel = words.removeNamed(what, formatDay(created_at));
    const used = last_used_at === null ? [] : [words.used(formatAgo(last_used_at))];
    return entry(what, [words.since(formatDay(created_at)), ...used], remove);
  };
  const read = async () => {
    const { passkeys } = await post<{ passkeys: Passkey[] }>('/web/login/passkey/list', {});
    refill(list, ...passkeys.map(draw));
  };
  void read().catch(failed.say);
  const lead = hasPasskeys() ? words.lead : words.unsupported;
  return section('passkeys', words.title, lead, list, failed.element, hasPasskeys() && add);
}
