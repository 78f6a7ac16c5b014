import type { ApiToken, CreatedToken } from '../../domain/resources.ts';
import { confirmDeletion } from '../ask-dialog.ts';
import { formatAgo, formatDay } from '../dates.ts';
import { button, field, make, makeChoice, makeForm, refill, submitButton } from '../dom.ts';
import { hasCode } from '../errors.ts';
import { moreTexts } from '../more-texts.ts';
import { ask, client } from '../session.ts';
import { freshLogin } from '../sign-in.ts';
import { entry, failure, ignoreGone, section } from './section.ts';

/** The section with the API tokens, for scripts and other programs. */

export function tokensSection(): HTMLElement {
  const words = moreTexts.tokens;
  const list = make('ul', { class: 'items' });
  const shown = make('div', { class: 'shown-token', role: 'status' });
  const failed = failure();

  const read = async () => {
    const { tokens } = await ask(() => client.listTokens());
    refill(list, ...tokens.map(draw));
    if (tokens.length === 0) refill(list, make('li', { class: 'hint' }, words.none));
  };
  const draw = (token: ApiToken) => {
    const revoke = failed.button(words.revoke, 'danger', async () => {
      if (!(await confirmDeletion(words.revokeAsk(token.name), words.revoke))) return;
      await ask(() => client.revokeToken(token.id)).catch(ignoreGone);
      await read();
    });
    revoke.ariaLabel = words.revokeNamed(token.name);
    return entry(token.name, describe(token), revoke);
  };
  const name = make('input', {
    name: 'name',
    required: true,
    maxlength: 255,
    dir: 'auto',
    autocomplete: 'off',
  });
  const scope = makeChoice({ read: words.read, write: words.write }, { name: 'scope' });
  const days = makeChoice(words.days, { name: 'days' });
  days.value = '90';
  const submit = submitButton(words.create);
  const create = async () => {
    if (name.value.trim() === '') {
      failed.say(words.nameMissing);
      return name.focus();
    }
    const expires_in_days = days.value === '' ? null : Number(days.value);
    const newToken = { name: name.value, scope: scope.value, expires_in_days };
    await failed.run(submit, async () => {
      try {
        const token = await ask(() => client.createToken(newToken));
        showOnce(token);
        name.value = '';
        await read();
      } catch (error) {
        if (!hasCode(error, 'PERMISSION_DENIED')) throw error;
        refill(shown, freshLogin(error.message));
      }
    });
  };
  const showOnce = ({ token, name: tokenName }: CreatedToken) => {
    const text = make('input', {
      readonly: true,
      value: token,
      'aria-label': words.token(tokenName),
      spellcheck: 'false',
    });
    const copy = button(
      words.copy,
      async () => {
        text.select();
        // Without TLS, browsers have no clipboard API. The text is selected, so that the user can copy it.
        await navigator.clipboard?.writeText(token).then(
          () => refill(copy, words.copied),
          () => {},
        );
      },
      { kind: 'primary' },
    );
    const curl = `curl -s ${location.origin}/api/v1/bookmarks/search -H 'Content-Type: application/json' -H 'Authorization: Bearer ${token}' -d '{"query":""}'`;
    refill(
      shown,
      make('p', {}, make('strong', {}, words.once)),
      make('div', { class: 'copy' }, text, copy),
      make('details', {}, make('summary', {}, words.tryIt), make('pre', { tabindex: '0' }, curl)),
    );
    text.focus();
    text.select();
  };
  const form = makeForm(
    'inline',
    create,
    field(words.name, name),
    field(words.scope, scope.element),
    field(words.expires, days.element),
    submit,
  );
  void read().catch(failed.say);
  return section('tokens', words.title, words.lead, list, form, failed.element, shown);
}

function describe({ scope, created_at, expires_at, last_used_at, last_four }: ApiToken): string[] {
  const words = moreTexts.tokens;
  return [
    scope === 'read' ? words.read : words.write,
    words.ends(last_four),
    words.created(formatDay(created_at)),
    expires_at === null ? words.neverExpires : words.expiresOn(formatDay(expires_at)),
    last_used_at === null ? words.unused : words.used(formatAgo(last_used_at)),
  ];
}
