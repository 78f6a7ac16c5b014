import type { Bookmark } from '../domain/resources.ts';
import { searchText } from '../domain/text.ts';
import { parseWebUrl } from '../domain/web-url.ts';
import { showTag } from '../formats/folders.ts';
import { fillTime } from './dates.ts';
import { iconButton, make } from './dom.ts';
import { excerpt, highlight } from './highlight.ts';
import { texts } from './texts.ts';

/** One bookmark as a row of the list. */

export interface RowActions {
  edit(bookmark: Bookmark): void;
  remove(bookmark: Bookmark): void;
  select(bookmark: Bookmark, isSelected: boolean, isRange: boolean): void;
  filterByTag(name: string): void;
  isSelected(bookmark: Bookmark): boolean;
  /** The normalized terms of the search. */
  terms(): readonly string[];
}

/** The number of tags that fit next to a title. If a bookmark has more tags, the row shows how many are left out. */
const SHOWN_TAGS = 3;

/** The number of different colours of the tiles. */
const HUES = 8;

export const hostOf = (url: string): string => (parseWebUrl(url)?.host ?? '').replace(/^www\./, '');

/** Returns the title, or the address without its scheme if the title is empty. */
export const titleOf = ({ title, url }: Pick<Bookmark, 'title' | 'url'>): string =>
  title || url.replace(/^https?:\/\/(www\.)?/i, '').replace(/\/$/, '') || texts.list.untitled;

/**
 * Creates a tile with the first letter of the host, in a colour that depends on the host. The page does not load the
 * site's own icon, because that would tell the site who has the bookmark.
 */
function drawTile(host: string): HTMLElement {
  let hash = 0;
  for (const character of host) hash = (hash * 31 + character.charCodeAt(0)) % 997;
  const letter = /[\p{L}\p{N}]/u.exec(host)?.[0] ?? '•';
  const element = make('span', { class: 'tile', 'aria-hidden': 'true' }, letter.toUpperCase());
  element.style.setProperty('--hue', String((hash % HUES) * (360 / HUES) + 20));
  return element;
}

function drawPicker(bookmark: Bookmark, host: string, actions: RowActions): HTMLElement {
  const box = make('input', {
    type: 'checkbox',
    checked: actions.isSelected(bookmark),
    'aria-label': texts.list.select(titleOf(bookmark)),
    onclick: (event: MouseEvent) => actions.select(bookmark, box.checked, event.shiftKey),
  });
  return make('label', { class: 'pick' }, drawTile(host), box);
}

/** Creates a bookmark's title as a link to its address. */
export function drawLink(bookmark: Pick<Bookmark, 'url' | 'title'>, terms: readonly string[]): HTMLElement {
  // The service accepts only web addresses. The page does not rely on that: any other address becomes text without a
  // link.
  const url = parseWebUrl(bookmark.url);
  const title = highlight(titleOf(bookmark), terms);
  const attributes = { class: 'title', dir: 'auto', title: bookmark.title };
  if (url === null) return make('span', { ...attributes, tabindex: '-1' }, ...title);
  return make('a', { ...attributes, href: url.href, rel: 'noreferrer noopener' }, ...title);
}

function drawTags({ tags }: Bookmark, actions: RowActions): HTMLElement {
  // If only one tag would be left out, the row shows it too, because a number would take as much room.
  const shown = tags.length > SHOWN_TAGS + 1 ? tags.slice(0, SHOWN_TAGS) : tags;
  const others = tags.slice(shown.length);
  const chips = shown.map(({ name }) =>
    make(
      'button',
      {
        type: 'button',
        class: 'chip',
        dir: 'auto',
        title: texts.list.filterBy(showTag(name)),
        onclick: () => actions.filterByTag(name),
      },
      showTag(name),
    ),
  );
  const rest =
    others.length > 0 &&
    make(
      'span',
      { class: 'chip rest', title: others.map(({ name }) => showTag(name)).join(', ') },
      texts.list.moreTags(others.length),
    );
  return make('div', { class: 'chips' }, ...chips, rest);
}

/** Creates a row: letter and checkbox, title, host, date, comment, tags and buttons. */
export function drawRow(bookmark: Bookmark, actions: RowActions): HTMLElement {
  const host = hostOf(bookmark.url);
  const title = titleOf(bookmark);
  const terms = actions.terms();
  const time = make('time', {});
  fillTime(time, bookmark.created_at);
  const isSelected = actions.isSelected(bookmark);
  const shown = searchText({ title, comment: bookmark.comment, url: host });
  // If nothing else that the row shows contains a term, the row shows the whole address.
  const address = host === '' || terms.some((term) => !shown.includes(term)) ? bookmark.url : host;
  return make(
    'li',
    {
      class: ['row', isSelected && 'selected', bookmark.tags.length === 0 && 'low'].filter(Boolean).join(' '),
    },
    drawPicker(bookmark, host, actions),
    make(
      'div',
      { class: 'what' },
      drawLink(bookmark, terms),
      make(
        'div',
        { class: 'about' },
        make('span', { class: 'host', dir: 'ltr' }, ...highlight(excerpt(address, terms), terms)),
        time,
        bookmark.comment !== '' &&
          make(
            'span',
            { class: 'comment', dir: 'auto', title: bookmark.comment },
            ...highlight(excerpt(bookmark.comment, terms), terms),
          ),
      ),
    ),
    drawTags(bookmark, actions),
    make(
      'div',
      { class: 'acts' },
      iconButton('edit', texts.list.edit(title), () => actions.edit(bookmark)),
      iconButton('trash', texts.list.delete(title), () => actions.remove(bookmark)),
    ),
  );
}

/** Creates a row that contains a form instead of its bookmark. */
export const openRow = (form: HTMLElement): HTMLElement => make('li', { class: 'row open' }, form);
