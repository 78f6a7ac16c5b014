import { type Command, Option } from 'commander';
import type { BookmarkClient, Collection, LocalEdit } from '../../client/index.ts';
import { isOperator, parseSearch, type SearchFilter, type SearchProblem } from '../../client/search-text.ts';
import { SORTS } from '../../domain/bounds.ts';
import type { Bookmark, BookmarkSearch, FoundBookmarks } from '../../domain/resources.ts';
import { foldText } from '../../domain/text.ts';
import { messageOf } from '../../domain/thrown.ts';
import { parseTimestamp } from '../../domain/timestamp.ts';
import { readTypedUrl } from '../../domain/typed-url.ts';
import { parseWebUrl } from '../../domain/web-url.ts';
import { isWebUrl } from '../../formats/write-netscape.ts';
import { gatherIds, gatherTags, integerFrom, tagsOption, toBatches } from '../arguments.ts';
import { bookmarkTable, printPages } from '../bookmark-table.ts';
import { openInBrowser } from '../browser.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { offlineOption, useOffline } from '../local-copy.ts';
import { searchLocally } from '../local-search.ts';
import { type PageTexts, readPage } from '../read-page.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** Adds the commands `add`, `edit`, `rm`, `get`, `open`, `search` and `list`. */
export function addBookmarkCommands(program: Command, run: Run): void {
  program
    .command('add')
    .description('add a bookmark')
    .argument(
      '<url>',
      'the address; a bare host name gets https://, and a text with a url in it stands for the url',
    )
    .option('--title <text>', "title (default: the page's own, which this computer reads)")
    .option('--comment <text>', 'comment')
    .addOption(tagsOption('a tag; repeat the option, or separate several with commas'))
    .option('--no-fetch', "do not read the page's title and description")
    .option('--created-at <time>', 'when it was saved, for example 2026-01-31T12:00:00Z (default: now)')
    .addOption(
      new Option(
        '--on-duplicate <what>',
        'if the url is already saved: add another bookmark, return the existing one, or fail (default: add another and print a note)',
      ).choices(['add', 'return', 'error']),
    )
    .addOption(offlineOption())
    .action(run(add));
  program
    .command('edit')
    .description('change a bookmark, or the tags of several; omitted fields are kept')
    .argument('<id...>', 'ids from `list`', gatherIds)
    .option('--new-url <url>', 'new url')
    .option('--title <text>', 'new title')
    .option('--comment <text>', 'new comment')
    .addOption(tagsOption('replace all its tags with this one; may be repeated'))
    .option('--no-tags', 'remove all its tags')
    .option('--add-tag <name>', 'add this tag to every bookmark; may be repeated', gatherTags)
    .option('--remove-tag <name>', 'remove this tag from every bookmark; may be repeated', gatherTags)
    .addOption(offlineOption())
    .action(run(edit));
  program
    .command('rm')
    .description('move bookmarks to the trash')
    .argument('<id...>', 'ids from `list`', gatherIds)
    .option('--permanently', 'delete them for good, without the trash')
    .addOption(offlineOption())
    .action(run(remove));
  program
    .command('get')
    .description('show a bookmark by its id, or all bookmarks with a url')
    .argument('<id-or-url>', 'an id from `list`, or a url', parseIdOrUrl)
    .addOption(offlineOption())
    .action(run(get));
  program
    .command('open')
    .description('open a bookmark in the browser')
    .argument('<id-or-url>', 'an id from `list`, or a url', parseIdOrUrl)
    .addOption(offlineOption())
    .action(run(openBookmark));
  program
    .command('search')
    .description(
      'search bookmarks; by default, the most recently added or imported come first, regardless of their dates',
    )
    .argument('[word...]', 'words that must all occur in the url, title or comment; or operators, see below')
    .addOption(tagsOption('only bookmarks with this tag; if repeated, with all of them'))
    .option(
      '--tag-under <name>',
      'only bookmarks with this tag or a tag below it, for example work/a below work; may be repeated',
      gatherTags,
    )
    .option('--without-tag <name>', 'only bookmarks without this tag; may be repeated', gatherTags)
    .option('--untagged', 'only bookmarks without tags')
    .option(
      '--after <time>',
      'only bookmarks saved on this day or later, or after a time: 2026-01-31T12:00:00Z',
    )
    .option(
      '--before <time>',
      'only bookmarks saved before this day or time; also a month or a year: 2026-01',
    )
    .option('--site <host>', 'only bookmarks of this host and its subdomains')
    .addOption(new Option('--sort <order>', 'order of the results').choices(SORTS).default(SORTS[0]))
    .option('--page <n>', 'page of the results', integerFrom(1), 1)
    .option('--per-page <n>', 'results per page, up to 100', integerFrom(1, 100), 50)
    .addOption(offlineOption())
    .addHelpText('after', SEARCH_HELP)
    .action(run(search));
  program
    .command('list')
    .description('list all bookmarks in the order they were added or imported, regardless of their dates')
    .option('-n, --limit <n>', 'print at most this many', integerFrom(1))
    .addOption(offlineOption())
    .action(run(list));
}

const SEARCH_HELP = `
Operators: tag:NAME, under:NAME, site:HOST, after:2026-01, before:2026-01-31, is:untagged.
A minus excludes a word, a phrase or a tag: -WORD, -tag:NAME. OR finds either of two: WORD OR tag:NAME.
Quote phrases, and names that contain spaces: '"to be or not"' tag:"to read". Shells treat #NAME as a comment; use tag:NAME instead.`;

/** Options that `add` and `edit` have in common. */
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
  fetch: boolean;
  offline?: string;
}

/**
 * Throws if a value for a local copy is invalid. Without this check, the user would get the error only at the next
 * `sync`, when the service refuses the value.
 */
function requireValid({ url, time }: { url?: string | undefined; time?: string | undefined }): void {
  if (url !== undefined && !isWebUrl(url)) throw new CliError(`${url} is not an http or https url`);
  if (time !== undefined && parseTimestamp(time) === undefined)
    throw new CliError(`${time} is not a valid time`, 'Expected a time like 2026-01-31T12:00:00Z');
}

async function add(
  session: Session,
  url: string,
  { title, comment, tag, createdAt, onDuplicate, fetch, offline }: AddOptions,
): Promise<void> {
  const fields = {
    url: readTypedUrl(url),
    title,
    comment,
    tags: tag,
    created_at: createdAt,
    on_duplicate: onDuplicate,
  };
  if (offline !== undefined) {
    requireValid({ url: fields.url, time: createdAt });
    const added = await useOffline(session, offline, (collection) => collection.add(fields), {
      mustExist: false,
    });
    return session.terminal.print(added, () => `Added ${describe(added)}`);
  }
  const client = await openOwnClient(session);
  const page = fetch && title === undefined ? await readPageOrNote(session, fields.url) : {};
  const described = { ...fields, title: title ?? page.title, comment: comment ?? page.description };
  const bookmark = await client.addBookmark(described, { signal: session.signal });
  const verb = onDuplicate === 'return' ? 'Saved as' : 'Added';
  await session.terminal.print(bookmark, () => `${verb} ${describe(bookmark)}`);
  if (onDuplicate === undefined) await warnOfDuplicates(session, client, bookmark);
}

/** Reads the title and the description of a page. If that fails, prints a note: the bookmark is saved without them. */
async function readPageOrNote({ terminal, signal }: Session, url: string): Promise<PageTexts> {
  if (!isWebUrl(url)) return {};
  try {
    return await readPage(url, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    terminal.note(`The title could not be read from the page: ${messageOf(error)}`);
    return {};
  }
}

/** Reports other bookmarks with the same url. Failures are ignored because the bookmark is already stored. */
async function warnOfDuplicates(
  { terminal, signal }: Session,
  client: BookmarkClient,
  { id, url }: Pick<Bookmark, 'id' | 'url'>,
): Promise<void> {
  const response = await client.getBookmarks({ url }, { signal }).catch(() => undefined);
  const otherIds = (response?.bookmarks ?? []).map((other) => other.id).filter((otherId) => otherId !== id);
  if (otherIds.length === 0) return;
  terminal.note(
    `This url is already saved: ${otherIds.join(', ')}. To avoid duplicates, use --on-duplicate return`,
  );
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
  const [id, ...others] = ids;
  if (offline === undefined) requireServiceIds(ids);
  // With `--no-tags`, commander sets `tags` to false.
  const change = { url, title, comment, tags: tags ? tag : (tag ?? []) };
  const changesFields = Object.values(change).some((field) => field !== undefined);
  const changesTags = addTag !== undefined || removeTag !== undefined;
  if (!changesFields && !changesTags) {
    throw new CliError(
      'no changes were given',
      'Expected --new-url, --title, --comment, --tag, --no-tags, --add-tag or --remove-tag',
    );
  }
  if (changesFields && changesTags)
    throw new CliError(
      '--add-tag and --remove-tag cannot be combined with other changes',
      'Run one command for the tags and another one for the other changes',
    );
  if (changesFields && others.length > 0)
    throw new CliError(
      'these fields can be changed only on one bookmark at a time',
      'For several bookmarks, use --add-tag and --remove-tag',
    );
  if (offline !== undefined) {
    requireValid({ url });
    const removed = new Set(removeTag?.map(foldText));
    const changed = await editOffline(session, offline, ids, (names) =>
      changesFields
        ? change
        : { tags: [...names, ...(addTag ?? [])].filter((name) => !removed.has(foldText(name))) },
    );
    return session.terminal.print(changesFields ? changed[0] : { changed: ids }, () =>
      changed.map((bookmark) => `Changed ${describe(bookmark)}`).join('\n'),
    );
  }
  const client = await openOwnClient(session);
  if (changesFields && id !== undefined) {
    const bookmark = await client.editBookmark({ id, ...change }, { signal: session.signal });
    return session.terminal.print(bookmark, () => `Changed ${describe(bookmark)}`);
  }
  await eachBatch(session, ids, 'Changed', (batch) =>
    client.editBookmarks(
      { ids: batch, add_tags: addTag, remove_tags: removeTag },
      { signal: session.signal },
    ),
  );
}

/** Changes bookmarks of a local copy. `toEdit` receives the names of a bookmark's tags, and returns what to change. */
function editOffline(
  session: Session,
  file: string,
  ids: readonly number[],
  toEdit: (names: string[]) => LocalEdit,
): Promise<Bookmark[]> {
  return useOffline(session, file, async (collection) => {
    const changed: Bookmark[] = [];
    for (const id of ids) {
      const names = (await collection.get(id))?.tags.map(({ name }) => name) ?? [];
      changed.push(await collection.edit(id, toEdit(names)));
    }
    return changed;
  });
}

/** Throws if an id is negative. Only a local copy has negative ids, so the service does not know them. */
function requireServiceIds(ids: readonly number[]): void {
  const localId = ids.find((id) => id < 0);
  if (localId === undefined) return;
  throw new CliError(`${localId} is an id in a local copy`, 'Name its file: --offline FILE');
}

/**
 * Changes or deletes bookmarks in batches. `verb` begins the output, for example `Changed`. Throws at the end if an id
 * does not exist.
 */
async function eachBatch(
  session: Session,
  ids: readonly number[],
  verb: string,
  change: (batch: number[]) => Promise<{ missing: number[] }>,
): Promise<void> {
  const missing: number[] = [];
  for (const batch of toBatches(ids)) missing.push(...(await change(batch)).missing);
  const changed = [...new Set(ids)].filter((id) => !missing.includes(id));
  if (missing.length > 0) {
    if (changed.length > 0) session.terminal.note(`${verb} ${changed.join(', ')}`);
    throw new CliError(
      `${missing.join(', ')} ${missing.length === 1 ? 'does' : 'do'} not exist`,
      'List all bookmarks: bookmarks list',
      'NOT_FOUND',
    );
  }
  await session.terminal.print({ [verb.toLowerCase()]: changed }, () => `${verb} ${changed.join(', ')}`);
}

async function remove(
  session: Session,
  ids: number[],
  { offline, permanently = false }: { offline?: string; permanently?: boolean },
): Promise<void> {
  if (offline !== undefined) {
    if (permanently) throw new CliError('--permanently cannot be combined with --offline');
    await useOffline(session, offline, async (collection) => {
      for (const id of ids) await collection.delete(id);
    });
    return session.terminal.print({ deleted: ids }, () => `Deleted ${ids.join(', ')}`);
  }
  requireServiceIds(ids);
  const client = await openOwnClient(session);
  await eachBatch(session, ids, 'Deleted', (batch) =>
    client.deleteBookmarks({ ids: batch, trash: !permanently }, { signal: session.signal }),
  );
}

async function get(session: Session, query: IdOrUrl, { offline }: { offline?: string }): Promise<void> {
  const bookmarks = await findBookmarks(session, query, offline);
  await session.terminal.printTable({ bookmarks }, bookmarkTable(bookmarks), '');
}

type IdOrUrl = { id: number } | { url: string };

/** Reads an argument as an id if it has only digits, and otherwise as a url. A local copy also has negative ids. */
const parseIdOrUrl = (text: string): IdOrUrl =>
  /^-?\d+$/.test(text) ? { id: gatherIds(text)[0] ?? 0 } : { url: readTypedUrl(text) };

/** Returns the bookmarks with an id or a url. Throws `NOT_FOUND` if there are none. */
async function findBookmarks(session: Session, query: IdOrUrl, offline?: string): Promise<Bookmark[]> {
  const bookmarks =
    offline === undefined
      ? (await (await openOwnClient(session)).getBookmarks(query, { signal: session.signal })).bookmarks
      : await useOffline(session, offline, (collection) => findLocally(collection, query));
  if (bookmarks.length > 0) return bookmarks;
  const what = 'id' in query ? `the id ${query.id}` : `the url ${query.url}`;
  throw new CliError(`no bookmark has ${what}`, undefined, 'NOT_FOUND');
}

async function findLocally(collection: Collection, query: IdOrUrl): Promise<Bookmark[]> {
  if ('id' in query) return [await collection.get(query.id)].filter((found) => found !== undefined);
  const normalize = (url: string) => parseWebUrl(url)?.href ?? url;
  const wanted = normalize(query.url);
  return (await collection.list()).filter(({ url }) => normalize(url) === wanted);
}

async function openBookmark(
  session: Session,
  query: IdOrUrl,
  { offline }: { offline?: string },
): Promise<void> {
  const { terminal, environment } = session;
  const [bookmark] = await findBookmarks(session, query, offline);
  const url = bookmark?.url ?? '';
  // A browser could run a url with another scheme, for example `javascript:`, as code.
  if (!isWebUrl(url)) throw new CliError('the url is neither http nor https', undefined, 'FAILED');
  if (!(await openInBrowser(environment.browser, url))) {
    throw new CliError('no browser could be started', 'Set BROWSER to the program to use', 'FAILED');
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
  offline?: string;
}

const NO_OPERATOR = 'is not a valid operator here; searching for it as text';

/** What a note says after the part of a search that cannot be applied. */
const PROBLEMS: Record<SearchProblem['kind'], string> = {
  unknown: NO_OPERATOR,
  value: NO_OPERATOR,
  minus: 'cannot be excluded, only words, phrases and tags can; searching for it as text',
  or: 'cannot be joined by OR, only up to ten words, phrases or tags can; searching for it as text',
  untagged: 'cannot be combined with a tag and is ignored',
};

async function search(session: Session, words: string[], options: SearchCommandOptions): Promise<void> {
  const { terminal, signal } = session;
  const { tag, tagUnder, withoutTag, untagged, after, before, site } = options;
  const { sort, page, perPage, offline } = options;
  const { search: fromWords, problems } = parseSearch(words.map(quoteOperator).join(' '));
  for (const { part, kind } of problems) terminal.note(`${part} ${PROBLEMS[kind]}`);
  const filter = {
    ...fromWords,
    tags: joinNames(fromWords.tags, tag),
    tag_under: joinNames(fromWords.tag_under, tagUnder),
    without_tags: joinNames(fromWords.without_tags, withoutTag),
    untagged: untagged ?? fromWords.untagged,
    site: site === undefined ? fromWords.site : readOption('site', site),
    created_after: after === undefined ? fromWords.created_after : readOption('after', after),
    created_before: before === undefined ? fromWords.created_before : readOption('before', before),
  };
  const results =
    offline === undefined
      ? await (await openOwnClient(session)).searchBookmarks(
          { ...filter, sort, page, per_page: perPage },
          { signal },
        )
      : await searchOffline(session, offline, filter, options);
  if (terminal.isJson) return terminal.print(results, () => '');
  const { bookmarks, total } = results;
  if (bookmarks.length > 0) await terminal.table(bookmarkTable(bookmarks));
  const more = results.has_more ? `; more: --page ${page + 1}` : '';
  // The position of this page's first bookmark in the list of all results, counted from 1.
  const first = (page - 1) * perPage + 1;
  const shown = bookmarks.length === 0 ? 'none' : `${first} to ${first + bookmarks.length - 1}`;
  terminal.note(`${total} found, ${shown} shown${more}`);
}

/** Returns a page of the results in a local copy, in the form of `/bookmarks/search`. */
async function searchOffline(
  session: Session,
  file: string,
  filter: SearchFilter,
  { sort, page, perPage }: SearchCommandOptions,
): Promise<Pick<FoundBookmarks, 'bookmarks' | 'total' | 'page' | 'per_page' | 'has_more'>> {
  const all = await useOffline(session, file, (collection) => collection.list());
  const found = searchLocally(all, filter, sort);
  const bookmarks = found.slice((page - 1) * perPage, page * perPage);
  return { bookmarks, total: found.length, page, per_page: perPage, has_more: page * perPage < found.length };
}

const FIELD_BY_OPTION = { site: 'site', after: 'created_after', before: 'created_before' } as const;

/** Reads an option that means the same as the operator of this name. Times may also be complete timestamps. */
function readOption(name: keyof typeof FIELD_BY_OPTION, text: string): string {
  const byOperator = parseSearch(`${name}:"${text.replaceAll('"', '""')}"`).search[FIELD_BY_OPTION[name]];
  const value = byOperator ?? (name === 'site' ? undefined : parseTimestamp(text));
  if (value !== undefined) return value;
  const expected =
    name === 'site' ? 'a host, for example example.org' : 'a day or a time, for example 2026-01-31';
  throw new CliError(`--${name}: expected ${expected}`);
}

/**
 * Joins two lists. Returns undefined instead of an empty list, because the service refuses an empty list together with
 * `untagged`.
 */
const joinNames = (fromWords: string[] = [], fromOption: string[] = []): string[] | undefined =>
  fromWords.length + fromOption.length > 0 ? [...fromWords, ...fromOption] : undefined;

/** Matches an operator whose value has a space but no quotes. */
const UNQUOTED_OPERATOR = /^(?<operator>-?(?:#|(?<name>[a-z]{2,}):))(?<value>[^"]*\s[^"]*)$/i;

/** Restores the quotes that the shell removed: `tag:"to read"` arrives as `tag:to read`. */
function quoteOperator(word: string): string {
  const { operator, name, value } = UNQUOTED_OPERATOR.exec(word.trim())?.groups ?? {};
  return operator !== undefined && (name === undefined || isOperator(name)) ? `${operator}"${value}"` : word;
}

async function list(
  session: Session,
  { limit = Number.POSITIVE_INFINITY, offline }: { limit?: number; offline?: string },
): Promise<void> {
  const { terminal, signal } = session;
  if (offline !== undefined) {
    const bookmarks = (await useOffline(session, offline, (collection) => collection.list())).slice(0, limit);
    return terminal.printTable({ bookmarks }, bookmarkTable(bookmarks), 'no bookmarks yet');
  }
  const pages = (await openOwnClient(session)).listAll({ signal });
  await printPages(terminal, pages, bookmarkTable, { limit, none: 'no bookmarks yet' });
}
