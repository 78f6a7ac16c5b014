import { type Command, Option } from 'commander';
import type { BookmarkClient, LocalEdit } from '../../client/index.ts';
import { parseSearch } from '../../client/search-text.ts';
import { SORTS } from '../../domain/bounds.ts';
import type { Bookmark, BookmarkSearch } from '../../domain/resources.ts';
import { foldText } from '../../domain/text.ts';
import { parseTimestamp } from '../../domain/timestamp.ts';
import { isWebUrl } from '../../formats/write-netscape.ts';
import { gatherIds, gatherTags, integerFrom, tagsOption, toBatches } from '../arguments.ts';
import { bookmarkTable, printPages } from '../bookmark-table.ts';
import { openInBrowser } from '../browser.ts';
import { toLine } from '../display-text.ts';
import { CliError } from '../faults.ts';
import { offlineOption, useOffline } from '../local-copy.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** Adds the commands `add`, `edit`, `rm`, `get`, `open`, `search` and `list`. */
export function addBookmarkCommands(program: Command, run: Run): void {
  program
    .command('add')
    .description('add a bookmark')
    .argument('<url>', 'the address; https:// is added to a bare host name')
    .option('--title <text>', 'title')
    .option('--comment <text>', 'comment')
    .addOption(tagsOption('a tag; repeat the option, or separate several with commas'))
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
    .argument('<id-or-url>', 'an id from `list`, or a url')
    .action(run(get));
  program
    .command('open')
    .description('open a bookmark in the browser')
    .argument('<id-or-url>', 'an id from `list`, or a url')
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
    .option('--after <time>', 'only bookmarks saved after this time, for example 2026-01-31T12:00:00Z')
    .option('--before <time>', 'only bookmarks saved before this time')
    .option('--site <host>', 'only bookmarks of this host and its subdomains')
    .addOption(new Option('--sort <order>', 'order of the results').choices(SORTS).default(SORTS[0]))
    .option('--page <n>', 'page of the results', integerFrom(1), 1)
    .option('--per-page <n>', 'results per page, up to 100', integerFrom(1, 100), 50)
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
Operators: tag:NAME, -tag:NAME, under:NAME, site:HOST, after:2026-01, before:2026-01-31, is:untagged.
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
  offline?: string;
}

/** Matches a url that begins with a host name instead of a scheme. */
const WITHOUT_SCHEME = /^[\w-]+(\.[\w-]+)+(:\d+)?([/?#]|$)/;

/** Adds `https://` to a url that begins with a host name. */
const completeUrl = (text: string): string => (WITHOUT_SCHEME.test(text) ? `https://${text}` : text);

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
  { title, comment, tag, createdAt, onDuplicate, offline }: AddOptions,
): Promise<void> {
  const fields = {
    url: completeUrl(url),
    title,
    comment,
    tags: tag,
    created_at: createdAt,
    on_duplicate: onDuplicate,
  };
  if (offline !== undefined) {
    requireValid({ url: fields.url, time: createdAt });
    const added = await useOffline(session, offline, (collection) => collection.add(fields));
    return session.terminal.print(added, () => `Added ${describe(added)}`);
  }
  const client = await openOwnClient(session);
  const bookmark = await client.addBookmark(fields, { signal: session.signal });
  const verb = onDuplicate === 'return' ? 'Saved as' : 'Added';
  await session.terminal.print(bookmark, () => `${verb} ${describe(bookmark)}`);
  if (onDuplicate === undefined) await warnOfDuplicates(session, client, bookmark);
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

async function get(session: Session, idOrUrl: string): Promise<void> {
  const { terminal, signal } = session;
  const client = await openOwnClient(session);
  const found = await client.getBookmarks(toQuery(idOrUrl), { signal });
  await terminal.printTable(found, bookmarkTable(found.bookmarks), 'no bookmark found');
}

/** Reads an argument as an id if it has only digits, and otherwise as a url. */
const toQuery = (idOrUrl: string): { id: number } | { url: string } =>
  /^\d+$/.test(idOrUrl) ? { id: integerFrom(1)(idOrUrl) } : { url: completeUrl(idOrUrl) };

async function openBookmark(session: Session, idOrUrl: string): Promise<void> {
  const { terminal, environment, signal } = session;
  const client = await openOwnClient(session);
  const query = toQuery(idOrUrl);
  const { bookmarks } = await client.getBookmarks(query, { signal });
  const url = bookmarks[0]?.url;
  if (url === undefined)
    throw new CliError(
      `no bookmark has the ${'id' in query ? 'id' : 'url'} ${idOrUrl}`,
      undefined,
      'NOT_FOUND',
    );
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
}

async function search(session: Session, words: string[], options: SearchCommandOptions): Promise<void> {
  const { terminal, signal } = session;
  const { tag, tagUnder, withoutTag, untagged, after, before, site } = options;
  const { sort, page, perPage } = options;
  const { search: fromWords, problems } = parseSearch(words.map(quoteOperator).join(' '));
  for (const { part, kind } of problems)
    terminal.note(
      kind === 'untagged'
        ? `${part} cannot be combined with a tag and is ignored`
        : `${part} is not a valid operator here; searching for it as text`,
    );
  const client = await openOwnClient(session);
  const query: BookmarkSearch = {
    ...fromWords,
    tags: joinNames(fromWords.tags, tag),
    tag_under: joinNames(fromWords.tag_under, tagUnder),
    without_tags: joinNames(fromWords.without_tags, withoutTag),
    untagged: untagged ?? fromWords.untagged,
    site: site ?? fromWords.site,
    created_after: after ?? fromWords.created_after,
    created_before: before ?? fromWords.created_before,
    sort,
    page,
    per_page: perPage,
  };
  const results = await client.searchBookmarks(query, { signal });
  if (terminal.isJson) return terminal.print(results, () => '');
  const { bookmarks, total } = results;
  if (bookmarks.length > 0) await terminal.table(bookmarkTable(bookmarks));
  const more = results.has_more ? `; more: --page ${page + 1}` : '';
  // The position of this page's first bookmark in the list of all results, counted from 1.
  const first = (page - 1) * perPage + 1;
  const shown = bookmarks.length === 0 ? 'none' : `${first} to ${first + bookmarks.length - 1}`;
  terminal.note(`${total} found, ${shown} shown${more}`);
}

/**
 * Joins two lists. Returns undefined instead of an empty list, because the service refuses an empty list together with
 * `untagged`.
 */
const joinNames = (fromWords: string[] = [], fromOption: string[] = []): string[] | undefined =>
  fromWords.length + fromOption.length > 0 ? [...fromWords, ...fromOption] : undefined;

/** Matches an operator whose value has a space but no quotes. */
const UNQUOTED_OPERATOR = /^(?<operator>-?(?:#|[a-z]{2,}:))(?<value>[^"]*\s[^"]*)$/i;

/** Restores the quotes that the shell removed: `tag:"to read"` arrives as `tag:to read`. */
function quoteOperator(word: string): string {
  const { operator, value = '' } = UNQUOTED_OPERATOR.exec(word)?.groups ?? {};
  const isUrl = value.startsWith('//');
  return operator === undefined || isUrl ? word : `${operator}"${value}"`;
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
