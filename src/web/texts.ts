/**
 * Every text of the page, by language. A language is a copy of `en` with other texts; the first one that the reader's
 * browser asks for and that exists is chosen. Numbers and dates follow the reader's locale whatever the language.
 */

const numbers = new Intl.NumberFormat(navigator.languages as string[]);
const number = (value: number): string => numbers.format(value);
const bookmarks = (count: number): string => `${number(count)} ${count === 1 ? 'bookmark' : 'bookmarks'}`;

const en = {
  name: 'Bookmarks',
  number,
  bookmarks,
  skip: 'Skip to the content',
  cancel: 'Cancel',
  close: 'Close',
  tryAgain: 'Try again',
  undo: 'Undo',

  signIn: {
    title: 'Sign in',
    lead: 'Your bookmarks, on every device.',
    again: 'Sign in again',
    ended: 'Your session has ended. Sign in to continue. Nothing that you typed is lost.',
    by: (provider: string) => `Continue with ${provider}`,
    or: 'or',
    code: 'Invite code or code from another device',
    codeHint:
      'Whoever runs this service gives out invite codes. On a device that is signed in, Settings › Sessions shows a code.',
    submit: 'Sign in',
    wrongCode: 'This code is unknown, was already used, or has expired. Ask for a new one.',
    malformedCode: 'A code has 8 or 12 letters and digits, for example ABCD1234.',
    fresh: 'Confirm that it is you',
    freshDone: 'Then try again here.',
    needed: 'You are signed out. Sign in again to continue.',
    button: 'Sign in',
  },

  menu: { bookmarks: 'Bookmarks', settings: 'Settings', signOut: 'Sign out', label: 'Main' },

  search: {
    label: 'Search bookmarks',
    placeholder: 'Search, tag:name, site:example.org',
    hint: 'Words search the address, title and comment. tag:name, -tag:name, site:example.org, before:2026-01-31, after:2026 and is:untagged narrow the search.',
    clear: 'Clear the search',
    problems: {
      unknown: (part: string) =>
        `There is no search filter “${part.split(':')[0]}:”. “${part}” is searched as text.`,
      minus: (part: string) => `Only tags can be excluded. “${part}” is searched as text.`,
      value: (part: string) => `“${part}” is not a valid filter. It is searched as text.`,
      untagged: (part: string) => `“${part}” cannot be combined with a tag and is ignored.`,
    },
    found: (count: number) => (count === 0 ? 'Nothing found' : `${bookmarks(count)} found`),
    order: 'Order',
    orders: { created: 'Newest first', oldest: 'Oldest first', updated: 'Last changed', title: 'By title' },
  },

  list: {
    label: 'Bookmarks',
    more: 'Load more',
    loading: 'Loading…',
    all: (count: number) => bookmarks(count),
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
    created: (when: string) => `Added ${when}`,
    failed: 'The list could not be loaded.',
  },

  editor: {
    add: 'Add bookmark',
    addShort: 'Add',
    edit: 'Edit bookmark',
    url: 'Address',
    urlHint: 'A web address, for example https://example.org/',
    title: 'Title',
    tags: 'Tags',
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
    newTag: (tag: string) => `New tag “${tag}”`,
    wrongUrl:
      'This is not a web address. A web address starts with http:// or https://, for example https://example.org/',
    gone: 'This bookmark was deleted elsewhere. Your text is still here. Save it to add the bookmark again.',
    changed:
      'This bookmark was changed elsewhere while you edited it. Saving changes only the fields that you edited.',
  },

  deleted: (count: number, title: string) =>
    count === 1 ? `Deleted “${title}”.` : `Deleted ${bookmarks(count)}.`,
  notDeleted: (reason: string) => `The bookmarks were not deleted. ${reason}`,
  restored: 'Restored.',

  tags: {
    title: 'Tags',
    open: 'Tags',
    all: 'All bookmarks',
    find: 'Find a tag',
    untagged: 'Without tags',
    none: 'The tags of your bookmarks appear here.',
    manage: 'Edit tags',
    done: 'Done',
    rename: (name: string) => `Rename tag ${name}`,
    delete: (name: string) => `Delete tag ${name}`,
    newName: (name: string) => `New name of tag ${name}`,
    deleteAsk: (name: string, count: number) =>
      `Delete tag “${name}”? This removes it from ${bookmarks(count)}. The bookmarks are kept.`,
    mergeAsk: (from: string, into: string) => `There is already a tag “${into}”. Merge “${from}” into it?`,
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
    offline: 'You are offline. The list may be out of date. It updates when you are back online.',
    unreachable: 'The service cannot be reached. Trying again…',
    busy: (seconds: number) => `The service is busy. Trying again in ${number(seconds)} s.`,
    limited: (time: string) => `Too many requests. The page continues at ${time}.`,
    back: 'Connected again.',
  },

  errors: {
    lost: 'The service could not be reached. Check your connection, then try again.',
    unavailable: 'The service is not available. Try again in a moment.',
    limited: 'Too many requests. Wait a moment, then try again.',
    internal: 'The service failed. Try again; if it fails again, tell the person who runs it.',
    gone: 'It no longer exists. It was deleted elsewhere.',
    full: (message: string) => `Your account is full: ${message}.`,
    denied: (message: string) => `This is not allowed: ${message}.`,
    invalid: (message: string) => `The service did not accept this: ${message}.`,
    unexpected: 'Something went wrong in this page. Reload it, and try again.',
  },

  profile: {
    title: 'Account',
    lead: 'Your account on this service.',
    email: 'E-mail address',
    plan: 'Plan',
    premium: 'Premium: any number of bookmarks',
    free: 'Free',
    since: 'Since',
    count: 'Bookmarks',
  },

  import: {
    title: 'Import',
    lead: 'Bring the bookmarks of a browser or of another service. The file is read on this device first.',
    choose: 'Choose a file, or drop it here',
    formats:
      'HTML of any browser; JSON of this service, Firefox or Karakeep; exports of Pinboard, Raindrop, linkding, Pocket ' +
      'and Instapaper; Chrome’s file Bookmarks; CSV with a column url',
    folders: 'Folders become tags',
    reading: (name: string) => `Reading ${name}…`,
    names: {
      'bookmark-service': 'a file of this service',
      netscape: 'a bookmark file of a browser',
      pinboard: 'an export of Pinboard',
      raindrop: 'an export of Raindrop',
      linkding: 'an export of linkding',
      karakeep: 'an export of Karakeep',
      pocket: 'an export of Pocket',
      instapaper: 'an export of Instapaper',
      firefox: 'a backup of Firefox',
      chrome: 'a bookmark file of Chrome',
      onetab: 'a list of OneTab',
      csv: 'a table (CSV)',
    },
    willRefuse: (count: number) =>
      count === 1 ? '1 entry cannot be imported' : `${number(count)} entries cannot be imported`,
    holds: (count: number, what: string) => `${bookmarks(count)} in ${what}`,
    tags: (count: number) => (count === 1 ? 'With 1 tag' : `With ${number(count)} tags`),
    combined: (count: number) => `${number(count)} that came twice are combined`,
    leftOut: (count: number) => `${number(count)} that are no web pages are left out`,
    mode: 'The bookmarks that you have already',
    merge: 'stay. What is new is added; addresses that you have are skipped.',
    replace: 'are all deleted, and the file takes their place.',
    replaceWord: 'replace',
    typeToReplace: (word: string, count: number) =>
      `This deletes ${bookmarks(count)} for good. Type “${word}” to confirm`,
    notConfirmed: (word: string) => `Type “${word}” into the field to confirm.`,
    start: (count: number) => `Import ${bookmarks(count)}`,
    running: (done: number, count: number) => `Importing… ${number(done)} of ${bookmarks(count)}`,
    stay: 'Keep this page open until it is done.',
    imported: (count: number) => `${bookmarks(count)} imported`,
    skipped: (count: number) => `${number(count)} skipped: you have them already.`,
    see: 'See your bookmarks',
    refused: (count: number) => `${number(count)} not imported`,
    what: 'Entry',
    why: 'Why',
    noWebPage: 'no web page',
    downloadRefused: 'Download this table',
    unreadable: (message: string) => `This file cannot be imported: ${message}.`,
  },

  export: {
    title: 'Export',
    lead: 'All your bookmarks as a file, at any time. HTML is what browsers import; JSON loses nothing.',
    json: 'Export JSON',
    html: 'Export HTML',
    running: (count: number) => `${bookmarks(count)} so far…`,
    done: (count: number) => `${bookmarks(count)} exported.`,
  },

  bookmarklet: {
    title: 'Save from any page',
    lead: 'Drag this link into the bookmarks bar of your browser. A click on it there saves the page that you are reading.',
    link: 'Save bookmark',
    code: 'Or make a bookmark by hand with this address',
  },

  save: {
    title: 'Save bookmark',
    done: 'Saved.',
    cancelled: 'Nothing was saved.',
    open: 'Open your bookmarks',
  },

  tokens: {
    title: 'API tokens',
    lead: 'A token lets a script or another program use your bookmarks by the API.',
    none: 'No tokens.',
    name: 'Name',
    nameMissing: 'Give the token a name, so that you know later what it is for.',
    scope: 'Scope',
    read: 'Read',
    write: 'Read and write',
    expires: 'Expiration',
    days: (count: number) => (count === 365 ? '1 year' : `${number(count)} days`),
    never: 'Never',
    create: 'Create token',
    token: (name: string) => `Token ${name}`,
    once: 'Copy it now: it is shown this once.',
    copy: 'Copy',
    copied: 'Copied',
    tryIt: 'Try it with curl',
    revoke: 'Revoke',
    revokeNamed: (name: string) => `Revoke token ${name}`,
    ends: (four: string) => `…${four}`,
    created: (when: string) => `created ${when}`,
    expiresOn: (when: string) => `expires ${when}`,
    neverExpires: 'never expires',
    used: (when: string) => `last used ${when}`,
    unused: 'not used yet',
  },

  sessions: {
    title: 'Sessions',
    lead: 'Where you are signed in.',
    unknown: 'Unknown program',
    current: 'this one',
    since: (when: string) => `since ${when}`,
    used: (when: string) => `last used ${when}`,
    end: 'Sign out',
    endNamed: (what: string, when: string) => `Sign out ${what} of ${when}`,
    endOthers: 'Sign out all others',
    ended: (count: number) => `${number(count)} signed out.`,
  },

  device: {
    title: 'Sign in another device',
    lead: 'Scan this, open the link or type the code there. Show it to nobody.',
    qr: 'QR code of the link',
    link: 'Link',
    until: (when: string) => `Works once, until ${when}.`,
    expired: 'The code has expired.',
  },

  lockOut: {
    title: 'You may lock yourself out',
    lead: 'You are signed in nowhere else. After this you need a new invite code.',
    confirm: 'Sign out anyway',
  },

  deleteAccount: {
    title: 'Delete account',
    lead: 'Deletes your account with all bookmarks, tags and tokens, for good. Export them before.',
    confirm: (email: string) => `Type ${email} to confirm`,
    notConfirmed: (email: string) => `Type ${email} into the field to confirm.`,
    submit: 'Delete account',
  },

  keys: {
    title: 'Keyboard',
    list: [
      ['/', 'search'],
      ['n', 'add a bookmark'],
      ['j  k', 'next and previous bookmark'],
      ['Enter', 'open the bookmark'],
      ['e', 'edit it'],
      ['x', 'toggle its selection'],
      ['Delete', 'delete it'],
      ['z', 'undo deleting'],
      ['?', 'this list'],
    ],
    change: 'Turn off shortcuts',
  },

  keyboard: {
    title: 'Keyboard',
    lead: 'These keys work on the list of bookmarks, but not while you type. The setting applies to this browser.',
    single: 'Keyboard shortcuts',
  },
};

export type Texts = typeof en;

const LANGUAGES: Record<string, Texts> = { en };

const chosen = navigator.languages.map((tag) => tag.split('-')[0]!).find((language) => language in LANGUAGES);

/** The texts in the language of the reader; in English where there are none. */
export const texts: Texts = LANGUAGES[chosen ?? 'en']!;

if (chosen !== undefined) document.documentElement.lang = chosen;
