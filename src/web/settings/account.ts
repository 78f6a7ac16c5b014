import type { Account } from '../../domain/resources.ts';
import { formatDay } from '../dates.ts';
import { field, make, makeForm, submitButton } from '../dom.ts';
import { hasCode } from '../errors.ts';
import { moreTexts } from '../more-texts.ts';
import { ask, client } from '../session.ts';
import { freshLogin } from '../sign-in.ts';
import { texts } from '../texts.ts';
import { failure, section } from './section.ts';

/** Creates the section with the account's profile. */
export function profileSection({
  email,
  is_premium,
  created_at,
  bookmark_count,
  bookmark_limit,
}: Account): HTMLElement {
  const words = moreTexts.profile;
  const facts: [string, string][] = [
    [words.email, email],
    [words.plan, is_premium ? words.premium : words.free],
    [words.since, formatDay(created_at)],
    [
      words.count,
      bookmark_limit === null
        ? texts.number(bookmark_count)
        : texts.list.ofCap(bookmark_count, bookmark_limit),
    ],
  ];
  const list = facts.flatMap(([name, value]) => [make('dt', {}, name), make('dd', { dir: 'auto' }, value)]);
  return section('profile', words.title, words.lead, make('dl', { class: 'profile' }, ...list));
}

/** Creates the section with the bookmarklet, a link for the browser's bookmarks bar that saves the page being read. */
export function saveSection(): HTMLElement {
  const words = moreTexts.bookmarklet;
  const code = `javascript:(()=>{open('${location.origin}/save?url='+encodeURIComponent(location.href)+'&title='+encodeURIComponent(document.title),'_blank','popup,width=560,height=640')})()`;
  const link = make(
    'a',
    { class: 'button plain', href: code, onclick: (event: MouseEvent) => event.preventDefault() },
    words.link,
  );
  const text = make('input', {
    readonly: true,
    value: code,
    spellcheck: 'false',
    onfocus: () => text.select(),
  });
  return section('save', words.title, words.lead, link, field(words.code, text));
}

/** Creates the section that deletes the account. */
export function deleteSection({ email }: Account): HTMLElement {
  const words = moreTexts.deleteAccount;
  const failed = failure();
  const fresh = make('div', {});
  const typed = make('input', { type: 'email', autocomplete: 'off', name: 'confirm' });
  const submit = submitButton(words.title, 'danger');
  const submitForm = () => {
    if (typed.value.trim().toLowerCase() !== email.toLowerCase()) {
      failed.say(words.notConfirmed(email));
      return typed.focus();
    }
    void failed.run(submit, async () => {
      try {
        await ask(() => client.deleteAccount(typed.value.trim()));
        location.assign('/');
      } catch (error) {
        if (!hasCode(error, 'PERMISSION_DENIED')) throw error;
        fresh.replaceChildren(freshLogin(error.message));
      }
    });
  };
  const form = makeForm('inline', submitForm, field(words.confirm(email), typed), submit);
  return section('delete', words.title, words.lead, form, failed.element, fresh);
}
