import { type Command, Option } from 'commander';
import type { BookmarkClient, LocalEdit } from '../../client/index.ts';
import { parseSearch } from '../../client/search-text.ts';
import type { Bookmark, BookmarkSearch } from '../../domain/resources.ts';
import { SORTS } from '../../domain/rules.ts';
import { foldText } from '../../domain/text.ts';
import { isWebUrl } from '../../formats/write-netscape.ts';
import { gatherIds, gatherTags, integerFrom, tagsOption } from '../arguments.ts';
import { bookmarkTable } from '../bookmark-table.ts';
import { openInBrowser } from '../browser.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { offlineOption, useOffline } from '../local-copy.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** Adds `add`, `edit`, `rm`, `get`, `open`, `search` and `list`. */
export function addBookmarkCommands(program: Command, run: Run): void {
  program
    .command('add')
    .description('add a bookmark')
    .argument('<url>')
    .option('--title <text>')
    .option('--comment <text>')
    .addOption(tagsOption('a tag; several: repeat it, or part them by commas'))
    .option('--created-at <time>', 'when it was saved, like 2026-01-31T12:00:00Z; default: now')
    .addOption(
      new Option(
        '--on-duplicate <what>',
        'where the url is there already: add another, return that one, or fail (default: add another, and say so)',
      ).choices(['add', 'return', 'error']),
    )
    .addOption(offlineOption())
    .action(run(add));
  program
    .command('edit')
    .description('change a bookmark, or the tags of several; what is not given stays')
    .argument('<id...>', 'as `list` shows them', gatherIds)
    .option('--new-url <url>')
    .option('--title <text>')
    .option('--comment <text>')
    .addOption(tagsOption('its tags from now on, in the place of all it has'))
    .option('--no-tags', 'take all its tags off')
    .option('--add-tag <name>', 'a further tag of all of them; may be repeated', gatherTags)
    .option('--remove-tag <name>', 'take this tag off all of them; may be repeated', gatherTags)
    .addOption(offlineOption())
    .action(run(edit));
  program
    .command('rm')
    .description('move bookmarks to the trash')
    .argument('<id...>', 'as `list` shows them', gatherIds)
    .addOption(offlineOption())
    .action(run(remove));
  program
    .command('get')
    .description('find a bookmark by its id, or those of a url')
    .argument('<id-or-url>')
    .action(run(get));
  program
    .command('open')
    .description('open a bookmark in the browser')
    .argument('<id-or-url>')
    .action(run(openBookmark));
  program
    .command('search')
    .description(
      'find bookmarks, the one added or imported last first, whatever its date, unless --sort says otherwise',
    )
    .argument('[word...]', 'each must occur in url, title or comment; also operators, as below')
    .addOption(tagsOption('only those that carry it; several: all of them'))
    .option(
      '--tag-under <name>',
      'only those with it or a tag below it, like work/a below work; may be repeated',
      gatherTags,
    )
    .option('--without-tag <name>', 'only those that do not carry it; may be repeated', gatherTags)
    .option('--untagged', 'only those without any tag')
    .option('--after <time>', 'only those saved after this time, like 2026-01-31T12:00:00Z')
    .option('--before <time>', 'only those saved before this time')
    .option('--site <host>', 'only those of this host and its subdomains')
    .addOption(new Option('--sort <order>').choices(SORTS).default(SORTS[0]))
    .option('--page <n>', 'further results', integerFrom(1), 1)
    .option('--per-page <n>', 'up to 100', integerFrom(1, 100), 50)
    .addHelpText('after', SEARCH_HELP)
    .action(run(search));
  program
    .command('list')
    .description('list all bookmarks in the order in which they were added or imported, whatever their dates')
    .option('-n, --limit <n>', 'at most so many', integerFrom(1))
    .addOption(offlineOption())
    .action(run(list));
}

const SEARCH_HELP = `
Operators: tag:NAME, -tag:NAME, under:NAME, site:HOST, after:2026-01, before:2026-01-31, is:untagged.
Quote a phrase, and a name that has spaces: '"to be or not"' tag:"to read". A shell takes #NAME for a comment; write tag:NAME.`;

interface Fields {
  title?: string;
  comment?: string;
  tag?: string[];
}

const describe = ({ id, title, url }: Pick<Bookmark, 'id' | 'title' | 'url'>): string =>
  `${id}  ${toLine(title || url)}`;

interface AddOptions extends Fields {
  createdAt?: string;
  onDuplicate?: 'add' | 'return' | 'error';
  offline?: string;
}

/** The url as typed; `https://` is added where it begins with a host name. */
const completeUrl = (text: string): string =>
  /^[\w-]+(\.[\w-]+)+(:\d+)?([/?#]|$)/.test(text) ? `https://${text}` : text;

/** The service refuses other urls. Offline, nobody else says so before `sync`. */
function requireUrl(url: string | undefined): void {
  if (url !== undefined && !isWebUrl(url)) throw new CliError(`${url} is neither an http nor an https url`);
}

async function add(
  session: Session,
  url: string,
  { title, comment, tag, createdAt, onDuplicate, offline }: AddOptions,
): Promise<void> {
  const sent = {
    url: completeUrl(url),
    title,
    comment,
    tags: tag,
    created_at: createdAt,
    on_duplicate: onDuplicate,
  };
  if (offline !== undefined) {
    requireUrl(sent.url);
    if (createdAt !== undefined && Number.isNaN(Date.parse(createdAt)))
      throw new CliError(`${createdAt} is no time`, 'Expected one like 2026-01-31T12:00:00Z');
    const added = await useOffline(session, offline, (collection) => collection.add(sent));
    return session.terminal.print(added, () => `Added ${describe(added)}`);
  }
  const client = await openOwnClient(session);
  const bookmark = await client.addBookmark(sent, { signal: session.signal });
  const done = onDuplicate === 'return' ? 'Saved as' : 'Added';
  await session.terminal.print(bookmark, () => `${done} ${describe(bookmark)}`);
  if (onDuplicate === undefined) await warnOfDuplicates(session, client, bookmark);
}

/** Names the other bookmarks of the same url. The bookmark is stored, so that a failure here is none of the command. */
async function warnOfDuplicates(
  { terminal, signal }: Session,
  client: BookmarkClient,
  { id, url }: Pick<Bookmark, 'id' | 'url'>,
): Promise<void> {
  const found = await client.getBookmarks({ url }, { signal }).catch(() => undefined);
  const others = (found?.bookmarks ?? []).filter((other) => other.id !== id).map((other) => other.id);
  if (others.length === 0) return;
  terminal.note(`This url was saved before: ${others.join(', ')}. To avoid that: --on-duplicate return`);
}

interface EditOptions extends Fields {
  newUrl?: string;
  tags: boolean;
  addTag?: string[];
  removeTag?: string[];
  offline?: string;
}

async function edit(session: Session, ids: number[], options: EditOptions): Promise<void> {
  const { newUrl: url, title, comment, tag, tags, addTag, removeTag, offline } = options;
  if (offline === undefined) requireIds(ids);
  const change = { url, title, comment, tags: tags ? tag : (tag ?? []) };
  const isWhole = Object.values(change).some((field) => field !== undefined);
  const isTags = addTag !== undefined || removeTag !== undefined;
  if (!isWhole && !isTags) {
    throw new CliError(
      'nothing to change was given',
      'Expected --new-url, --title, --comment, --tag, --no-tags, --add-tag or --remove-tag',
    );
  }
  if (isWhole && (isTags || ids.length > 1)) {
    throw new CliError(
      'this can be changed on one bookmark at a time',
      'On several: --add-tag and --remove-tag',
    );
  }
  if (offline !== undefined) {
    requireUrl(url);
    return editOffline(session, offline, ids, change, { isWhole, addTag, removeTag });
  }
  const client = await openOwnClient(session);
  if (isWhole) {
    const bookmark = await client.editBookmark({ id: ids[0]!, ...change }, { signal: session.signal });
    return session.terminal.print(bookmark, () => `Changed ${describe(bookmark)}`);
  }
  await eachBatch(session, ids, 'Changed', (batch) =>
    client.editBookmarks(
      { ids: batch, add_tags: addTag, remove_tags: removeTag },
      { signal: session.signal },
    ),
  );
}

interface OfflineEdit {
  /** Fields were given, and not tags to add or remove. */
  isWhole: boolean;
  addTag: string[] | undefined;
  removeTag: string[] | undefined;
}

async function editOffline(
  session: Session,
  file: string,
  ids: readonly number[],
  change: LocalEdit,
  { isWhole, addTag = [], removeTag = [] }: OfflineEdit,
): Promise<void> {
  const removed = new Set(removeTag.map(foldText));
  const changed = await useOffline(session, file, async (collection) => {
    const bookmarks: Bookmark[] = [];
    for (const id of ids) {
      const names = (await collection.get(id))?.tags.map(({ name }) => name) ?? [];
      const tags = [...names, ...addTag].filter((name) => !removed.has(foldText(name)));
      bookmarks.push(await collection.edit(id, isWhole ? change : { tags }));
    }
    return bookmarks;
  });
  await session.terminal.print(isWhole ? changed[0] : { changed: ids }, () =>
    changed.map((bookmark) => `Changed ${describe(bookmark)}`).join('\n'),
  );
}

function requireIds(ids: readonly number[]): void {
  const local = ids.find((id) => id < 0);
  if (local === undefined) return;
  throw new CliError(`${local} is an id in a local copy`, 'Name its file: --offline FILE');
}

/** As many ids as one request takes. */
const BATCH_SIZE = 500;

/** Changes or deletes bookmarks, so many at a time; fails where some are not there, once the others are done. */
async function eachBatch(
  session: Session,
  ids: readonly number[],
  done: string,
  change: (batch: number[]) => Promise<{ missing: number[] }>,
): Promise<void> {
  const missing: number[] = [];
  for (let from = 0; from < ids.length; from += BATCH_SIZE) {
    missing.push(...(await change(ids.slice(from, from + BATCH_SIZE))).missing);
  }
  const changed = [...new Set(ids)].filter((id) => !missing.includes(id));
  if (missing.length > 0) {
    if (changed.length > 0) session.terminal.note(`${done} ${changed.join(', ')}`);
    throw new CliError(`${missing.join(', ')} does not exist`, 'All bookmarks: bookmarks list', 'NOT_FOUND');
  }
  await session.terminal.print({ [done.toLowerCase()]: changed }, () => `${done} ${changed.join(', ')}`);
}

async function remove(session: Session, ids: number[], { offline }: { offline?: string }): Promise<void> {
  if (offline !== undefined) {
    await useOffline(session, offline, async (collection) => {
      for (const id of ids) await collection.delete(id);
    });
    return session.terminal.print({ deleted: ids }, () => `Deleted ${ids.join(', ')}`);
  }
  requireIds(ids);
  const client = await openOwnClient(session);
  const [id, ...others] = ids as [number, ...number[]];
  if (others.length === 0) {
    await client.deleteBookmark(id, { signal: session.signal });
    return session.terminal.print({ deleted: ids }, () => `Deleted ${id}`);
  }
  await eachBatch(session, ids, 'Deleted', (batch) =>
    client.deleteBookmarks(batch, { signal: session.signal }),
  );
}

async function get(session: Session, given: string): Promise<void> {
  const { terminal, signal } = session;
  const client = await openOwnClient(session);
  const found = await client.getBookmarks(chooseBookmark(given), { signal });
  if (terminal.isJson) return terminal.print(found, () => '');
  if (found.bookmarks.length === 0) return terminal.note('there is none');
  await terminal.table(bookmarkTable(found.bookmarks));
}

/** A bookmark by its id, or those of a url. */
const chooseBookmark = (given: string): { id: number } | { url: string } =>
  /^\d+$/.test(given) ? { id: integerFrom(1)(given) } : { url: completeUrl(given) };

async function openBookmark(session: Session, given: string): Promise<void> {
  const { terminal, environment, signal } = session;
  const client = await openOwnClient(session);
  const { bookmarks } = await client.getBookmarks(chooseBookmark(given), { signal });
  const url = bookmarks[0]?.url;
  if (url === undefined) throw new CliError(`no bookmark has the url ${given}`, undefined, 'NOT_FOUND');
  // The browser might run another kind of link.
  if (!isWebUrl(url)) throw new CliError('its url is neither http nor https', undefined, 'FAILED');
  if (!(await openInBrowser(environment.browser, url))) {
    throw new CliError('no browser could be started', 'Name its program in BROWSER', 'FAILED');
  }
  await terminal.print({ opened: url }, () => `Opened ${toLine(url)}`);
}

interface SearchCommandOptions {
  tag?: string[];
  tagUnder?: string[];
  withoutTag?: string[];
  untagged?: boolean;
  after?: string;
  before?: string;
  site?: string;
  sort: NonNullable<BookmarkSearch['sort']>;
  page: number;
  perPage: number;
}

async function search(session: Session, words: string[], options: SearchCommandOptions): Promise<void> {
  const { terminal, signal } = session;
  const {
    tag = [],
    tagUnder = [],
    withoutTag = [],
    untagged,
    after,
    before,
    site,
    sort,
    page,
    perPage,
  } = options;
  const { search: typed, problems } = parseSearch(words.map(quoteOperator).join(' '));
  for (const { part } of problems)
    terminal.note(`${part} is no operator that applies here: searched as text`);
  const client = await openOwnClient(session);
  const query: BookmarkSearch = {
    ...typed,
    tags: noneWhereEmpty([...(typed.tags ?? []), ...tag]),
    tag_under: noneWhereEmpty([...(typed.tag_under ?? []), ...tagUnder]),
    without_tags: noneWhereEmpty([...(typed.without_tags ?? []), ...withoutTag]),
    untagged: untagged ?? typed.untagged,
    site: site ?? typed.site,
    created_after: after ?? typed.created_after,
    created_before: before ?? typed.created_before,
    sort,
    page,
    per_page: perPage,
  };
  const found = await client.searchBookmarks(query, { signal });
  if (terminal.isJson) return terminal.print(found, () => '');
  if (found.bookmarks.length > 0) await terminal.table(bookmarkTable(found.bookmarks));
  const more = found.has_more ? `; more: --page ${page + 1}` : '';
  const first = (page - 1) * perPage + 1;
  const shown = found.bookmarks.length === 0 ? 'none' : `${first} to ${first + found.bookmarks.length - 1}`;
  terminal.note(`${found.total} found, ${shown} shown${more}`);
}

const noneWhereEmpty = (names: string[]): string[] | undefined => (names.length > 0 ? names : undefined);

/** Restores the quotes that the shell took: `tag:"to read"` arrives as `tag:to read`. */
function quoteOperator(word: string): string {
  const [, operator, value = ''] = /^(-?(?:#|[a-z]{2,}:))([^"]*\s[^"]*)$/i.exec(word) ?? [];
  return operator === undefined || value.startsWith('//') ? word : `${operator}"${value}"`;
}

async function list(
  session: Session,
  { limit = Number.POSITIVE_INFINITY, offline }: { limit?: number; offline?: string },
): Promise<void> {
  const { terminal, signal } = session;
  if (offline !== undefined) {
    const held = await useOffline(session, offline, (collection) => collection.list());
    const bookmarks = held.slice(0, limit);
    return terminal.isJson
      ? terminal.print({ bookmarks }, () => '')
      : terminal.table(bookmarkTable(bookmarks));
  }
  const client = await openOwnClient(session);
  if (terminal.isJson) await terminal.write('{"bookmarks":[');
  let count = 0;
  for await (const whole of client.listAll({ signal })) {
    const page = whole.slice(0, limit - count);
    const isFirst = count === 0;
    count += page.length;
    if (terminal.isJson) {
      await terminal.write((isFirst ? '' : ',') + page.map((bookmark) => JSON.stringify(bookmark)).join(','));
    } else await terminal.table(bookmarkTable(page), { header: isFirst });
    if (count >= limit) break;
  }
  if (terminal.isJson) await terminal.write(']}\n');
  else if (count === 0) terminal.note('no bookmarks yet');
}
