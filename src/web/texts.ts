/**
 * Every text of the page, by language. A language is a copy of `en` with other texts; the first one that the reader's
 * browser asks for and that exists is chosen. Numbers and dates follow the reader's locale whatever the language.
 */

const number = (value: number): string => value.toLocaleString(navigator.languages as string[]);
const bookmarks = (count: number): string => `${number(count)} ${count === 1 ? 'bookmark' : 'bookmarks'}`;

const en = {
  name: 'Bookmarks',
  number,
  bookmarks,
  skip: 'Skip to the bookmarks',
  cancel: 'Cancel',
  close: 'Close',
  tryAgain: 'Try again',
  undo: 'Undo',

  signIn: {
    title: 'Sign in',
    lead: 'Your bookmarks, on every device.',
    again: 'Sign in again',
    ended: 'Your session has ended. Nothing that you typed is lost: sign in, and go on where you were.',
    by: (provider: string) => `Continue with ${provider}`,
    or: 'or',
    code: 'Invite code',
    codeHint: '8 letters and digits. The person who runs this service gives them out.',
    submit: 'Sign in',
    wrongCode: 'This code is not known, was used before, or has expired. Ask for a new one.',
    malformedCode: 'A code has 8 letters and digits, for example ABCD1234.',
    needed: 'You are signed out. Sign in again to go on.',
    button: 'Sign in',
  },

  menu: { bookmarks: 'Bookmarks', settings: 'Settings', signOut: 'Sign out', label: 'Main' },

  search: {
    label: 'Search bookmarks',
    placeholder: 'Search, tag:name, site:example.org',
    hint: 'Words search url, title and comment. tag:name, -tag:name, site:example.org and is:untagged narrow it down.',
    clear: 'Clear the search',
    found: (count: number) => (count === 0 ? 'Nothing found' : `${bookmarks(count)} found`),
    order: 'Order',
    orders: { newest: 'Newest first', oldest: 'Oldest first', updated: 'Last changed', title: 'By title' },
  },

  list: {
    label: 'Bookmarks',
    more: 'Load more',
    loading: 'Loading…',
    all: (count: number) => bookmarks(count),
    ofCap: (count: number, cap: number) => `${number(count)} of ${number(cap)} bookmarks`,
    end: 'That is all.',
    empty: 'No bookmarks yet',
    emptyHelp: 'Add the first one by its address, or bring those of your browser.',
    import: 'Import bookmarks',
    none: 'Nothing found',
    noneHelp: 'No bookmark matches all of this. Fewer words find more.',
    untitled: 'Untitled',
    edit: (title: string) => `Edit “${title}”`,
    delete: (title: string) => `Delete “${title}”`,
    select: (title: string) => `Select “${title}”`,
    filterBy: (tag: string) => `Show only tag ${tag}`,
    moreTags: (count: number) => `+${count}`,
    created: (when: string) => `Added ${when}`,
    failed: 'The list could not be read.',
  },

  editor: {
    add: 'Add bookmark',
    addShort: 'Add',
    edit: 'Edit bookmark',
    url: 'Address',
    urlHint: 'A web address, for example https://example.org/',
    title: 'Title',
    tags: 'Tags',
    tagsHint: 'Enter or a comma ends a tag.',
    comment: 'Comment',
    save: 'Save',
    saving: 'Saving…',
    added: 'Added.',
    saved: 'Saved.',
    known: (title: string, when: string) => `Saved already: “${title}”, ${when}.`,
    editKnown: 'Edit that one',
    removeTag: (tag: string) => `Remove tag ${tag}`,
    suggestions: 'Your tags',
    newTag: (tag: string) => `New tag “${tag}”`,
    wrongUrl: 'This is no web address. It begins with http:// or https://, as in https://example.org/',
    gone: 'This bookmark was deleted elsewhere meanwhile. Your text is still here: copy it, or add it anew.',
    changed: 'This bookmark was changed elsewhere while you edited it. Saving replaces that change.',
  },

  deleted: (count: number, title: string) =>
    count === 1 ? `Deleted “${title}”.` : `Deleted ${bookmarks(count)}.`,
  notDeleted: (reason: string) => `Not deleted, and back in the list. ${reason}`,
  restored: 'It is back.',

  tags: {
    title: 'Tags',
    open: 'Tags',
    all: 'All bookmarks',
    find: 'Find a tag',
    untagged: 'Without tags',
    none: 'Tags that you give to bookmarks are listed here.',
    manage: 'Edit tags',
    done: 'Done',
    rename: (name: string) => `Rename tag ${name}`,
    delete: (name: string) => `Delete tag ${name}`,
    newName: (name: string) => `New name of tag ${name}`,
    deleteAsk: (name: string, count: number) =>
      `Delete tag “${name}”? ${bookmarks(count)} lose it and stay otherwise.`,
    mergeAsk: (from: string, into: string) => `There is a tag “${into}” already. Merge “${from}” into it?`,
    merge: 'Merge',
    deleteButton: 'Delete tag',
    count: (name: string, count: number) => `${name}, ${bookmarks(count)}`,
  },

  selection: {
    label: 'Selected bookmarks',
    count: (count: number) => `${number(count)} selected`,
    tag: 'Add tag',
    untag: 'Remove tag',
    tagName: 'Tag',
    delete: 'Delete',
    clear: 'Clear',
    tagged: (count: number, tag: string) => `Tag “${tag}” added to ${bookmarks(count)}.`,
    untagged: (count: number, tag: string) => `Tag “${tag}” removed from ${bookmarks(count)}.`,
  },

  connection: {
    offline: 'You are offline. What you see may be old; it catches up by itself.',
    unreachable: 'The service cannot be reached. Trying again…',
    busy: (seconds: number) => `The service is busy. Trying again in ${number(seconds)} s.`,
    limited: (time: string) => `Too many requests at once. It goes on by itself at ${time}.`,
    back: 'Connected again.',
  },

  errors: {
    lost: 'The service could not be reached. Check your connection, then try again.',
    unavailable: 'The service cannot do this now. Try again in a moment.',
    limited: 'Too many requests at once. Wait a moment, then try again.',
    internal: 'The service failed. Try again; if it fails again, tell the person who runs it.',
    gone: 'It is not there any more: it was deleted elsewhere.',
    full: (message: string) => `Your account is full: ${message}.`,
    denied: (message: string) => `This is not allowed: ${message}.`,
    invalid: (message: string) => `The service did not take it: ${message}.`,
    unexpected: 'Something went wrong in this page. Reload it, and try again.',
  },

  keys: {
    title: 'Keyboard',
    list: [
      ['/', 'search'],
      ['n', 'add a bookmark'],
      ['j  k', 'next and previous bookmark'],
      ['Enter', 'open the bookmark'],
      ['e', 'edit it'],
      ['x', 'choose it, for several at once'],
      ['Delete', 'delete it'],
      ['z', 'undo deleting'],
      ['?', 'this list'],
    ],
  },
};

export type Texts = typeof en;

const LANGUAGES: Record<string, Texts> = { en };

const chosen = navigator.languages.map((tag) => tag.split('-')[0]!).find((language) => language in LANGUAGES);

/** The texts in the language of the reader; in English where there are none. */
export const texts: Texts = LANGUAGES[chosen ?? 'en']!;

if (chosen !== undefined) document.documentElement.lang = chosen;
