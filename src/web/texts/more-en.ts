import { en } from './en.ts';
import { number } from './language.ts';

/** The English texts of the sign-in, the settings, the dialogs and the offline page. */

const { bookmarks } = en;

export const moreEn = {
  signIn: {
    title: 'Sign in',
    lead: 'Your bookmarks, on every device.',
    again: 'Sign in again',
    ended: 'Your session has ended. Sign in to continue. Nothing that you typed is lost.',
    by: (provider: string) => `Continue with ${provider}`,
    or: 'or',
    code: 'Invite code or code from another device',
    codeHint:
      'You get an invite code from the person who runs this service. On a device where you are signed in, you find a code under Settings › Sessions.',
    wrongCode: 'This code is unknown, was already used, or has expired. Ask for a new one.',
    usedLink:
      'This link was already used, or it has expired. To get a new one, start the service again, or use a device where you are signed in: Settings › Sessions.',
    malformedCode: 'A code has 8 or 12 letters and digits, for example ABCD1234.',
    byPasskey: 'Sign in with a passkey',
    noPasskey: 'No passkey was used. Try again, or sign in with a code.',
    fresh: 'Confirm that it is you',
    freshDone: 'Then try again here.',
  },

  save: {
    title: 'Save bookmark',
    undone: 'The bookmark is in the trash.',
    cancelled: 'Nothing was saved.',
    open: 'Open your bookmarks',
  },

  offline: {
    lead: 'You are offline. These are the newest bookmarks of your last visit.',
    waits: 'waiting to be saved',
  },

  many: {
    deleteAsk: (count: number) => `Delete ${bookmarks(count)}?`,
    deleteForGoodAsk: (count: number) => `Delete ${bookmarks(count)} for good? This cannot be undone.`,
    tagAsk: (count: number, tag: string) => `Add the tag “${tag}” to ${bookmarks(count)}?`,
    untagAsk: (count: number, tag: string) => `Remove the tag “${tag}” from ${bookmarks(count)}?`,
    deleting: 'Deleting bookmarks',
    restoring: 'Restoring bookmarks',
    tagging: 'Changing tags',
    progress: (done: number, count: number) => `${number(done)} of ${number(count)}`,
    stop: 'Stop',
    ended: (done: number, count: number, reason: string) =>
      `${number(done)} of ${bookmarks(count)} done. ${reason}`,
  },

  tags: {
    lead: 'Renaming, merging and deleting tags keeps the bookmarks.',
    orders: { use: 'Most used first', name: 'By name' },
    save: 'Rename',
    rename: (name: string) => `Rename tag ${name}`,
    delete: (name: string) => `Delete tag ${name}`,
    newName: (name: string) => `New name of tag ${name}`,
    withChildren: (count: number) =>
      count === 1 ? 'Also rename the tag below it' : `Also rename the ${number(count)} tags below it`,
    below: (count: number) => (count === 1 ? '1 tag below it' : `${number(count)} tags below it`),
    deleteBelow: (count: number) =>
      count === 1 ? 'Also delete the tag below it' : `Also delete the ${number(count)} tags below it`,
    deleteFolderAsk: (name: string, count: number) =>
      count === 1
        ? `Delete the tag below “${name}”? The bookmarks are kept.`
        : `Delete the ${number(count)} tags below “${name}”? The bookmarks are kept.`,
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
    renamed: (name: string) => `Renamed to “${name}”.`,
  },

  trash: {
    lead: (days: number) =>
      `Deleted bookmarks stay here for ${days === 1 ? '1 day' : `${number(days)} days`}. Then they are deleted for good.`,
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
    'tag:': 'With this tag. #name does the same',
    '-tag:': 'Without this tag',
    'under:': 'With this tag or a tag below it, such as Work/a below Work',
    'site:': 'On this site, for example site:example.org',
    'before:': 'Saved before this day, for example before:2026-01-31',
    'after:': 'Saved on this day or later, for example after:2026',
    'is:untagged': 'Without any tag',
    '"': 'An exact phrase, for example "to be or not"',
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
    lead: 'Import bookmarks from a browser or another service. Your browser reads the file first and shows what is in it.',
    choose: 'Choose a file, or drop it here',
    formats:
      'HTML from any browser; JSON from this service, Firefox, Linkwarden, Karakeep, Omnivore or wallabag; exports from ' +
      'Pinboard, Raindrop, linkding, Pocket and Instapaper; Chrome’s Bookmarks file; CSV with a “url” column',
    folders: 'Folders become tags',
    reading: (name: string) => `Reading ${name}…`,
    names: {
      'bookmark-service': 'an export of this service',
      netscape: 'a browser’s bookmark file',
      pinboard: 'an export from Pinboard',
      raindrop: 'an export from Raindrop',
      linkding: 'an export from linkding',
      linkwarden: 'a backup of Linkwarden',
      karakeep: 'an export from Karakeep',
      pocket: 'an export from Pocket',
      instapaper: 'an export from Instapaper',
      omnivore: 'an export from Omnivore',
      wallabag: 'an export from wallabag',
      firefox: 'a Firefox backup',
      chrome: 'Chrome’s Bookmarks file',
      onetab: 'a OneTab list',
      buku: 'an export from buku',
      csv: 'a CSV table',
      json: 'a JSON list',
    },
    willRefuse: (count: number) =>
      count === 1 ? '1 entry cannot be imported' : `${number(count)} entries cannot be imported`,
    known: (count: number) =>
      count === 1
        ? 'You already have 1 of these addresses'
        : `You already have ${number(count)} of these addresses`,
    holds: (count: number, what: string) => `${bookmarks(count)} in ${what}`,
    tags: (count: number) => (count === 1 ? 'With 1 tag' : `With ${number(count)} tags`),
    foldersToTags: (count: number) =>
      count === 1 ? '1 folder becomes a tag' : `${number(count)} folders become tags`,
    folder: (path: string, tag: string, count: number) => `${path}: tag ${tag}, ${bookmarks(count)}`,
    andMore: (count: number) => `and ${number(count)} more`,
    combined: (count: number) =>
      count === 1 ? '1 duplicate is combined' : `${number(count)} duplicates are combined`,
    leftOut: (count: number) =>
      count === 1 ? '1 entry is left out' : `${number(count)} entries are left out`,
    omissions: {
      'no-url': 'it has no address',
      'not-web': 'not a web page',
      'bad-url': 'the address is invalid',
      trash: 'in the trash',
      truncated: 'the file ends inside the entry',
      'no-entry': 'not a bookmark',
    },
    changed: (count: number) => (count === 1 ? '1 text is changed' : `${number(count)} texts are changed`),
    changes: {
      'title-shortened': 'title shortened, its rest is in the comment',
      'comment-shortened': 'comment shortened',
      'tag-shortened': 'tag shortened',
      'folder-shortened': 'path of folders shortened',
      'tags-dropped': 'tags beyond the first 100 dropped',
      'date-dropped': 'unreadable date dropped',
      'value-dropped': 'value that is not text dropped',
      'bytes-replaced': 'unreadable characters replaced',
    },
    unknownFields: (names: string) => `Not read: ${names}`,
    guessedEncoding: (encoding: string) => `Read as ${encoding}, because the file is not UTF-8`,
    tooMany: (count: number, cap: number) =>
      `The file has ${bookmarks(count)}. Your plan allows ${number(cap)}. Nothing was uploaded.`,
    mayNotFit: (count: number, cap: number, free: number) =>
      `You have ${number(count)} of ${number(cap)} bookmarks, so ${number(free)} new ones fit. Addresses that you already have do not count.`,
    mode: 'Your existing bookmarks',
    merge: 'Keep them. New bookmarks are added. Addresses that you already have are skipped.',
    replace: 'Replace them all with the file. The trash keeps the old bookmarks for some time.',
    replaceWord: 'replace',
    typeToReplace: (word: string, count: number) =>
      `This moves ${bookmarks(count)} to the trash. Type “${word}” to confirm`,
    notConfirmed: (word: string) => `Type “${word}” into the field to confirm.`,
    start: (count: number) => `Import ${bookmarks(count)}`,
    running: (done: number, count: number) => `Importing… ${number(done)} of ${bookmarks(count)}`,
    stay: 'Keep this page open until the import is done.',
    imported: (count: number) => `${bookmarks(count)} imported`,
    skipped: (count: number) => `${number(count)} skipped, because you already have them.`,
    see: 'See your bookmarks',
    refused: (count: number) => `${number(count)} not imported`,
    what: 'Entry',
    why: 'Why',
    downloadRefused: 'Download this table',
    unreadable: (message: string) => `This file cannot be imported: ${message}.`,
  },

  export: {
    title: 'Export',
    lead: 'Download all your bookmarks as a file. Browsers import HTML. Spreadsheets open CSV. JSON keeps everything.',
    json: 'Export JSON',
    html: 'Export HTML',
    csv: 'Export CSV',
    running: (count: number) => `${bookmarks(count)} so far…`,
    done: (count: number) => `${bookmarks(count)} exported.`,
  },

  bookmarklet: {
    title: 'Save from any page',
    lead: 'Drag this link to the bookmarks bar of your browser. Then click it on any page to save that page.',
    link: 'Save bookmark',
    code: 'Or create a bookmark with this address yourself',
  },

  tokens: {
    title: 'API tokens',
    lead: 'A token lets a script or another program use your bookmarks through the API.',
    none: 'No tokens.',
    name: 'Name',
    nameMissing: 'Give the token a name, so that you recognize it later.',
    scope: 'Scope',
    read: 'Read',
    write: 'Read and write',
    expires: 'Expiration',
    days: { 7: '7 days', 30: '30 days', 90: '90 days', 365: '1 year', '': 'Never' },
    create: 'Create token',
    token: (name: string) => `Token ${name}`,
    once: 'Copy it now. It is shown only once.',
    copy: 'Copy',
    copied: 'Copied',
    tryIt: 'Try it with curl',
    revoke: 'Revoke',
    revokeAsk: (name: string) =>
      `Revoke the token “${name}”? Programs that use it lose access immediately. This cannot be undone.`,
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
    lead: 'The browsers and programs that are signed in to your account.',
    unknown: 'Unknown program',
    current: 'this session',
    since: (when: string) => `since ${when}`,
    used: (when: string) => `last used ${when}`,
    end: 'Sign out',
    endNamed: (what: string, when: string) => `Sign out ${what}, since ${when}`,
    endOthers: 'Sign out all others',
    ended: (count: number) => `${number(count)} signed out.`,
  },

  device: {
    title: 'Sign in another device',
    lead: 'On the other device, scan the QR code, open the link or type the code. Do not show it to anyone else.',
    qr: 'QR code of the link',
    link: 'Link',
    until: (when: string) => `Works once, until ${when}.`,
    expired: 'The code has expired.',
    used: (name: string) => `Signed in: ${name}.`,
  },

  passkeys: {
    title: 'Passkeys',
    lead: 'Sign in with your fingerprint, face, PIN or security key, on every device that has the passkey.',
    needsName:
      'Passkeys need a host name, but this page has an IP address. The person who runs this service can give it a name.',
    openByName: 'Passkeys need a host name, but this page has an IP address. Open the page at its name:',
    unsupported: 'This browser cannot use passkeys.',
    offer: 'Add a passkey, so that you can sign in again without an invite code.',
    add: 'Add a passkey',
    added: 'Passkey added.',
    name: 'Name of the passkey',
    reasons: {
      InvalidStateError: 'No passkey was added: this device already has one for your account.',
      NotAllowedError: 'No passkey was added: it was cancelled or took too long.',
      NotSupportedError: 'No passkey was added: this device cannot create one that the service accepts.',
      ConstraintError:
        'No passkey was added: this device cannot verify that it is you. Set up a PIN, for example.',
      SecurityError: 'No passkey was added: the browser does not allow it at this address.',
      other: 'No passkey was added: the browser could not create one.',
    },
    refused: 'No passkey was added: the service does not accept it, or this took more than five minutes.',
    remove: 'Remove',
    removeNamed: (name: string, day: string) => `Remove passkey ${name}, added ${day}`,
    unknown: 'Passkey',
    since: (day: string) => `added ${day}`,
    used: (when: string) => `used ${when}`,
    sessionOld: 'This needs a recent sign-in. Sign out, sign in again, and try once more.',
    lastOne: 'This is your only way to sign in. Add another passkey first.',
  },

  lockOut: {
    title: 'You may lose access',
    lead: 'You are not signed in anywhere else. To sign in again, you would need a new invite code.',
    confirm: 'Sign out anyway',
  },

  deleteAccount: {
    title: 'Delete account',
    lead: 'Deletes your account with all bookmarks, tags and tokens for good. Export your bookmarks first.',
    confirm: (email: string) => `Type ${email} to confirm`,
    notConfirmed: (email: string) => `Type ${email} into the field to confirm.`,
  },

  keys: {
    title: 'Keyboard shortcuts',
    lead: 'These keys work on the list of bookmarks, but not while you type. The setting applies to this browser.',
    use: 'Use keyboard shortcuts',
    list: [
      ['/', 'search'],
      ['n', 'add a bookmark'],
      ['j  k', 'next and previous bookmark'],
      ['Enter', 'open the bookmark'],
      ['e', 'edit it'],
      ['x', 'add it to the selection, or remove it'],
      ['Delete', 'delete it'],
      ['z', 'undo the last deletion'],
      ['?', 'show this list'],
    ],
    change: 'Turn off shortcuts',
  },

  appearance: {
    title: 'Appearance',
    lead: 'These settings apply to this browser.',
    theme: 'Theme',
    themes: { '': 'Same as the system', light: 'Light', dark: 'Dark' },
    rows: 'Rows',
    language: 'Language',
    asBrowser: 'Same as the browser',
    heights: { '': 'Comfortable', compact: 'Compact: titles and tags only' },
  },
};

/** The texts that each language has. */
export type MoreTexts = typeof moreEn;
