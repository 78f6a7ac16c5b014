import { chooseTexts, texts } from './texts.ts';

/** The texts that the first load of the page does not need: those of the settings and of dialogs. */

const { number, bookmarks } = texts;

const en = {
  offline: {
    lead: 'You are offline. These are the newest bookmarks of your last visit.',
    save: 'Save when online',
    kept: 'Kept on this device. It is saved when you open this page online.',
    waits: 'waiting to be saved',
    full: 'This browser has no space left. Nothing was kept.',
  },

  tags: {
    lead: 'Renaming, merging and deleting tags keeps the bookmarks.',
    order: 'Order',
    orders: { use: 'Most used first', name: 'By name' },
    save: 'Rename',
    rename: (name: string) => `Rename tag ${name}`,
    delete: (name: string) => `Delete tag ${name}`,
    newName: (name: string) => `New name of tag ${name}`,
    withChildren: (count: number) =>
      count === 1 ? 'Also rename the tag below it' : `Also rename the ${number(count)} tags below it`,
    deleteAsk: (name: string, count: number) =>
      `Delete tag “${name}”? This removes it from ${bookmarks(count)}. The bookmarks are kept.`,
    mergeAsk: (from: string, count: number, into: string, intoCount: number) =>
      `There is already a tag “${into}” with ${bookmarks(intoCount)}. Merge “${from}” into it? This changes the tags of ${bookmarks(count)} and deletes the tag “${from}”.`,
    merge: 'Merge',
    deleteButton: 'Delete tag',
    unused: (count: number) => (count === 1 ? 'Delete 1 unused tag' : `Delete ${number(count)} unused tags`),
    unusedAsk: (count: number) =>
      count === 1
        ? 'Delete the tag that no bookmark has?'
        : `Delete the ${number(count)} tags that no bookmark has?`,
    deleting: (done: number, count: number) => `Deleting… ${number(done)} of ${number(count)}`,
    shown: (shown: number, count: number) => `${number(shown)} of ${number(count)} tags shown`,
  },

  trash: {
    lead: 'Deleted bookmarks stay here for some time. Then they are gone for good.',
    none: 'The trash is empty.',
    deleted: 'deleted',
    restore: 'Restore',
    restoreNamed: (title: string) => `Restore “${title}”`,
    restoreShown: (count: number) => `Restore all ${number(count)} shown`,
    deleteNamed: (title: string) => `Delete “${title}” for good`,
    deleteAsk: (title: string) => `Delete “${title}” for good? This cannot be undone.`,
    deleteButton: 'Delete for good',
    empty: 'Empty the trash',
    emptyAsk: (count: number) => `Delete ${bookmarks(count)} for good? This cannot be undone.`,
    emptyAskAll: 'Delete everything in the trash for good? This cannot be undone.',
    emptied: (count: number) => `${bookmarks(count)} deleted for good.`,
  },

  suggestions: 'Suggestions',
  operators: {
    'tag:': 'With this tag, also #name',
    '-tag:': 'Without this tag',
    'under:': 'With this tag or one below it, like Work/a below Work',
    'site:': 'Of this site, like site:example.org',
    'before:': 'Saved before, like before:2026-01-31',
    'after:': 'Saved since, like after:2026',
    'is:untagged': 'Without any tag',
    '"': 'Words side by side, like "to be or not"',
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
      buku: 'a list of buku',
      csv: 'a table (CSV)',
    },
    willRefuse: (count: number) =>
      count === 1 ? '1 entry cannot be imported' : `${number(count)} entries cannot be imported`,
    holds: (count: number, what: string) => `${bookmarks(count)} in ${what}`,
    tags: (count: number) => (count === 1 ? 'With 1 tag' : `With ${number(count)} tags`),
    foldersToTags: (count: number) =>
      count === 1 ? '1 folder becomes a tag' : `${number(count)} folders become tags`,
    folder: (path: string, tag: string, count: number) => `${path}: tag ${tag}, ${bookmarks(count)}`,
    andMore: (count: number) => `and ${number(count)} more`,
    combined: (count: number) => `${number(count)} that came twice are combined`,
    leftOut: (count: number) => `${number(count)} that are no web pages are left out`,
    tooMany: (count: number, cap: number) =>
      `These are ${bookmarks(count)}. Your plan takes ${number(cap)}. Nothing was sent.`,
    mayNotFit: (count: number, cap: number, free: number) =>
      `You have ${bookmarks(count)} of ${number(cap)}: ${number(free)} new ones fit. Addresses that you have do not count.`,
    mode: 'The bookmarks that you have already',
    merge: 'stay. What is new is added; addresses that you have are skipped.',
    replace: 'are all deleted, and the file takes their place. The trash keeps them for some time.',
    replaceWord: 'replace',
    typeToReplace: (word: string, count: number) =>
      `This moves ${bookmarks(count)} to the trash. Type “${word}” to confirm`,
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

  passkeys: {
    title: 'Passkeys',
    lead: 'Sign in by fingerprint, PIN or security key, on every device that has the passkey.',
    needsName:
      'Passkeys need a host name, and this page is at an IP address. Whoever runs this service can give it a name.',
    unsupported: 'This browser cannot use passkeys.',
    offer: 'Add a passkey, so that you can sign in again without an invite code.',
    add: 'Add a passkey',
    added: 'Passkey added',
    notAdded: 'No passkey was added.',
    remove: 'Remove',
    removeNamed: (name: string, day: string) => `Remove the passkey of ${name}, ${day}`,
    unknown: 'Passkey',
    since: (day: string) => `added ${day}`,
    used: (when: string) => `used ${when}`,
    sessionOld: 'This needs a recent sign-in. Sign out, sign in again, and try once more.',
    lastOne: 'This is the last way in to your account. Add another passkey first.',
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

  appearance: {
    title: 'Appearance',
    lead: 'These settings apply to this browser. Numbers and dates follow its language.',
    theme: 'Theme',
    themes: { '': 'As the system', light: 'Light', dark: 'Dark' },
    rows: 'Rows',
    heights: { '': 'Comfortable', compact: 'Compact: titles and tags only' },
  },

  keyboard: {
    title: 'Keyboard',
    lead: 'These keys work on the list of bookmarks, but not while you type. The setting applies to this browser.',
    single: 'Keyboard shortcuts',
  },
};

/** The texts in the language of the reader. */
export const moreTexts = chooseTexts({ en });
