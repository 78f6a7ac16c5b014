import { number } from './language.ts';

/** The English texts that the first load of the page needs. */

const bookmarks = (count: number): string => `${number(count)} ${count === 1 ? 'bookmark' : 'bookmarks'}`;

export const en = {
  name: 'Bookmarks',
  number,
  bookmarks,
  skip: 'Skip to the content',
  cancel: 'Cancel',
  close: 'Close',
  tryAgain: 'Try again',
  undo: 'Undo',

  signInNeeded: 'You are signed out. Sign in again to continue.',

  menu: { bookmarks: 'Bookmarks', settings: 'Settings', signOut: 'Sign out', label: 'Main' },

  search: {
    label: 'Search bookmarks',
    placeholder: 'Search, tag:name, site:example.org',
    hint: 'Words and "phrases" search the address, title and comment. tag:name, under:name, site:example.org, before:2026-01-31, after:2026 and is:untagged narrow the search. A minus excludes a word, a phrase or a tag. OR finds either of two.',
    clear: 'Clear the search',
    offer: (count: number, tag: string) => `${bookmarks(count)} tagged ${tag}`,
    problems: {
      unknown: (part: string) =>
        `There is no search filter “${part.replace(/^-/, '').split(':')[0]}:”. “${part}” is searched as text.`,
      minus: (part: string) => `Only words, phrases and tags can be excluded. “${part}” is searched as text.`,
      or: (part: string) => `OR joins up to ten words, phrases or tags. “${part}” is searched as text.`,
      value: (part: string) => `“${part}” is not a valid filter. It is searched as text.`,
      untagged: (part: string) => `“${part}” cannot be combined with a tag and is ignored.`,
    },
    partial: (count: number) =>
      `The service cannot be reached. Only the ${bookmarks(count)} that this page has loaded are searched.`,
    found: (count: number) => (count === 0 ? 'Nothing found' : `${bookmarks(count)} found`),
    order: 'Order',
    orders: {
      newest: 'Added: newest first',
      oldest: 'Added: oldest first',
      created: 'Dated: newest first',
      created_oldest: 'Dated: oldest first',
      updated: 'Last edited',
      title: 'By title',
    },
  },

  list: {
    more: 'Load more',
    loading: 'Loading…',
    ofCap: (count: number, cap: number) => `${number(count)} of ${number(cap)} bookmarks`,
    end: 'End of the list.',
    empty: 'No bookmarks yet',
    emptyHelp: 'Add your first bookmark, or import the bookmarks of your browser.',
    import: 'Import bookmarks',
    none: 'Nothing found',
    noneHelp: 'No bookmark matches your search. Try fewer words.',
    untitled: 'Untitled',
    edit: (title: string) => `Edit “${title}”`,
    delete: (title: string) => `Delete “${title}”`,
    select: (title: string) => `Select “${title}”`,
    filterBy: (tag: string) => `Show only tag ${tag}`,
    moreTags: (count: number) => `+${count}`,
    failed: 'The list could not be loaded.',
  },

  editor: {
    add: 'Add bookmark',
    addShort: 'Add',
    edit: 'Edit bookmark',
    url: 'Address',
    title: 'Title',
    tagsHint: 'Press Enter or type a comma after each tag.',
    comment: 'Comment',
    save: 'Save',
    saving: 'Saving…',
    added: 'Added.',
    saved: 'Saved.',
    known: (title: string, when: string) => `You already saved “${title}”, ${when}.`,
    editKnown: 'Edit it',
    removeTag: (tag: string) => `Remove tag ${tag}`,
    suggestions: 'Your tags',
    wrongUrl:
      'This is not a web address. A web address starts with http:// or https://, for example https://example.org/',
    unreached: 'The service cannot be reached. Your text is not lost.',
    later: 'Save when online',
    kept: 'Kept on this device. It will be saved when you are online.',
    waiting: 'Waiting for the connection. Then your text is saved.',
    noSpace: 'This browser has no space left. Nothing was kept.',
    gone: 'This bookmark was deleted elsewhere. Your text is still here. Save it to add the bookmark again.',
    changed:
      'This bookmark was changed elsewhere while you edited it. Saving changes only the fields that you edited.',
    labels: { url: 'Address', title: 'Title', comment: 'Comment', tags: 'Tags' },
    differs: (field: string, here: string, there: string) => `${field}: here “${here}”, elsewhere “${there}”`,
    discardAsk: 'Discard what you have typed?',
    discard: 'Discard',
  },

  deleted: (count: number, title: string) =>
    count === 1 ? `Deleted “${title}”.` : `Deleted ${bookmarks(count)}.`,
  notDeleted: (reason: string) => `The bookmarks were not deleted. ${reason}`,
  restored: (count: number, of: number) =>
    count === of
      ? 'Restored.'
      : `${number(count)} of ${bookmarks(of)} restored. The others are no longer in the trash.`,
  notRestored: (reason: string) => `The bookmarks were not restored. ${reason}`,
  trash: 'Trash',

  tags: {
    title: 'Tags',
    all: 'All bookmarks',
    find: 'Find a tag',
    untagged: 'Without tags',
    none: 'The tags of your bookmarks appear here.',
    manage: 'Edit tags',
    count: (name: string, count: number) => `${name}, ${bookmarks(count)}`,
    under: (path: string, count: number) => `${path} and the tags below it, ${number(count)}`,
    shown: (shown: number, count: number) => `${number(shown)} of ${number(count)} tags shown`,
    below: (path: string) => `Tags below ${path}`,
  },

  selection: {
    label: 'Selected bookmarks',
    count: (count: number) => `${number(count)} selected`,
    all: (count: number) => `Select all ${number(count)}`,
    reading: (done: number, count: number) => `Reading ${number(done)} of ${number(count)}…`,
    tag: 'Add tag',
    untag: 'Remove tag',
    tagName: 'Tag',
    delete: 'Delete',
    clear: 'Clear',
    tagged: (count: number, tag: string) => `Tag “${tag}” added to ${bookmarks(count)}.`,
    untagged: (count: number, tag: string) => `Tag “${tag}” removed from ${bookmarks(count)}.`,
  },

  connection: {
    offline: 'You are offline. The list may be out of date. It updates when you are back online.',
    unreachable: 'The service cannot be reached. Trying again…',
    busy: (seconds: number) => `The service is busy. Trying again in ${number(seconds)} s.`,
    limited: (time: string) => `Too many requests. The page continues at ${time}.`,
  },

  errors: {
    lost: 'The service could not be reached. Check your connection, then try again.',
    unavailable: 'The service is not available. Try again in a moment.',
    limited: 'Too many requests. Wait a moment, then try again.',
    internal: 'The service failed. Try again. If it fails again, tell the person who runs it.',
    gone: 'It no longer exists. It was deleted elsewhere.',
    full: (message: string) => `Your account is full: ${message}.`,
    suspended: 'Your account is suspended. Nothing in it is deleted. Ask the person who runs the service.',
    denied: (message: string) => `This is not allowed: ${message}.`,
    invalid: (message: string) => `The service did not accept this: ${message}.`,
    unexpected: 'Something went wrong in this page. Reload it, and try again.',
  },
};

/** The texts that each language has. */
export type Texts = typeof en;
