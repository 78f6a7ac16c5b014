import type { Tag } from '../domain/resources.ts';
import { make, refill } from './dom.ts';
import { addForm, type Editor, editForm } from './editor.ts';
import { noticeElements } from './notices.ts';
import { ask, client } from './session.ts';
import { requireUser } from './start.ts';
import { texts } from './texts.ts';

/** The window that the bookmarklet opens: a form with the page one was reading. Nothing is saved without a click. */

await requireUser();

const given = new URLSearchParams(location.search);
/** Android's apps share an address as `url`, or in a text. */
const url = given.get('url') || (/https?:\/\/\S+/i.exec(given.get('text') ?? '')?.[0] ?? '');
let tags: readonly Tag[] = [];
const main = make('main', { class: 'save' });

function end(text: string): void {
  refill(main, make('p', { class: 'done', role: 'status' }, text), make('a', { href: '/' }, texts.save.open));
  // A window that the bookmarklet opened closes itself; one that the reader opened stays.
  setTimeout(() => close(), 1_200);
}

const options = {
  ownTags: () => tags,
  onSaved: () => end(texts.save.done),
  onCancel: () => end(texts.save.cancelled),
};

function show(editor: Editor): void {
  refill(main, make('h1', { class: 'hidden' }, texts.save.title), editor.element);
  editor.focus();
}

document.body.replaceChildren(main, ...noticeElements());
document.body.dataset.started = 'yes';
document.title = texts.save.title;
show(addForm({ url, title: given.get('title') ?? '' }, options, (known) => show(editForm(known, options))));
// Without them nothing is completed; everything else works.
await ask(() => client.listTags()).then(
  (list) => {
    tags = list.tags;
  },
  () => {},
);
