import { de } from './de.ts';
import { number } from './language.ts';
import type { MoreTexts } from './more-en.ts';

/** The German texts of the sign-in, the settings, the dialogs and the offline page. */

const { bookmarks } = de;

export const moreDe: MoreTexts = {
  signIn: {
    title: 'Anmelden',
    lead: 'Deine Lesezeichen, auf jedem Gerät.',
    again: 'Erneut anmelden',
    ended: 'Deine Sitzung ist beendet. Melde dich an, um fortzufahren. Deine Eingaben bleiben erhalten.',
    by: (provider) => `Weiter mit ${provider}`,
    or: 'oder',
    code: 'Einladungscode oder Code von einem anderen Gerät',
    codeHint:
      'Einladungscodes bekommst du von der Person, die diesen Dienst betreibt. Auf einem angemeldeten Gerät findest du einen Code unter „Einstellungen › Sitzungen“.',
    wrongCode: 'Dieser Code ist unbekannt, wurde schon verwendet oder ist abgelaufen. Bitte um einen neuen.',
    usedLink:
      'Dieser Link wurde schon verwendet oder ist abgelaufen. Einen neuen bekommst du, wenn du den Dienst neu startest, oder auf einem angemeldeten Gerät unter „Einstellungen › Sitzungen“.',
    malformedCode: 'Ein Code hat 8 oder 12 Buchstaben und Ziffern, zum Beispiel ABCD1234.',
    byPasskey: 'Mit einem Passkey anmelden',
    noPasskey: 'Es wurde kein Passkey verwendet. Versuche es erneut oder melde dich mit einem Code an.',
    fresh: 'Bestätige, dass du es bist',
    freshDone: 'Versuche es danach hier noch einmal.',
  },

  save: {
    title: 'Lesezeichen speichern',
    undone: 'Das Lesezeichen ist im Papierkorb.',
    cancelled: 'Nichts wurde gespeichert.',
    open: 'Deine Lesezeichen öffnen',
  },

  offline: {
    lead: 'Du bist offline. Das sind die neuesten Lesezeichen deines letzten Besuchs.',
    waits: 'noch nicht gespeichert',
  },

  many: {
    deleteAsk: (count) => `${bookmarks(count)} löschen?`,
    deleteForGoodAsk: (count) =>
      `${bookmarks(count)} endgültig löschen? Das lässt sich nicht rückgängig machen.`,
    tagAsk: (count, tag) => `Das Tag „${tag}“ zu ${bookmarks(count)} hinzufügen?`,
    untagAsk: (count, tag) => `Das Tag „${tag}“ von ${bookmarks(count)} entfernen?`,
    deleting: 'Lesezeichen werden gelöscht',
    restoring: 'Lesezeichen werden wiederhergestellt',
    tagging: 'Tags werden geändert',
    progress: (done, count) => `${number(done)} von ${number(count)}`,
    stop: 'Anhalten',
    ended: (done, count, reason) => `${number(done)} von ${bookmarks(count)} erledigt. ${reason}`,
  },

  tags: {
    lead: 'Wenn du Tags umbenennst, zusammenführst oder löschst, bleiben die Lesezeichen erhalten.',
    orders: { use: 'Häufigste zuerst', name: 'Nach Name' },
    save: 'Umbenennen',
    rename: (name) => `Tag ${name} umbenennen`,
    delete: (name) => `Tag ${name} löschen`,
    newName: (name) => `Neuer Name des Tags ${name}`,
    withChildren: (count) =>
      count === 1 ? 'Auch das Tag darunter umbenennen' : `Auch die ${number(count)} Tags darunter umbenennen`,
    below: (count) => (count === 1 ? '1 Tag darunter' : `${number(count)} Tags darunter`),
    deleteBelow: (count) =>
      count === 1 ? 'Auch das Tag darunter löschen' : `Auch die ${number(count)} Tags darunter löschen`,
    deleteFolderAsk: (name, count) =>
      count === 1
        ? `Das Tag unter „${name}“ löschen? Die Lesezeichen bleiben.`
        : `Die ${number(count)} Tags unter „${name}“ löschen? Die Lesezeichen bleiben.`,
    deleteAsk: (name, count) =>
      `Tag „${name}“ löschen? Es wird von ${bookmarks(count)} entfernt. Die Lesezeichen bleiben.`,
    mergeAsk: (from, count, into, intoCount) =>
      `Es gibt schon ein Tag „${into}“ mit ${bookmarks(intoCount)}. „${from}“ damit zusammenführen? Das ändert die Tags von ${bookmarks(count)} und löscht das Tag „${from}“.`,
    merge: 'Zusammenführen',
    deleteButton: 'Tag löschen',
    unused: (count) =>
      count === 1 ? '1 unbenutztes Tag löschen' : `${number(count)} unbenutzte Tags löschen`,
    unusedAsk: (count) =>
      count === 1
        ? 'Das Tag löschen, das kein Lesezeichen hat?'
        : `Die ${number(count)} Tags löschen, die kein Lesezeichen hat?`,
    deleting: (done, count) => `${number(done)} von ${number(count)} gelöscht …`,
    renamed: (name) => `Umbenannt in „${name}“.`,
  },

  trash: {
    lead: (days) =>
      `Gelöschte Lesezeichen bleiben ${days === 1 ? '1 Tag' : `${number(days)} Tage`} lang hier. Danach werden sie endgültig gelöscht.`,
    none: 'Der Papierkorb ist leer.',
    deleted: 'gelöscht',
    restore: 'Wiederherstellen',
    restoreNamed: (title) => `„${title}“ wiederherstellen`,
    restoreShown: (count) => `Alle ${number(count)} angezeigten wiederherstellen`,
    deleteNamed: (title) => `„${title}“ endgültig löschen`,
    deleteAsk: (title) => `„${title}“ endgültig löschen? Das lässt sich nicht rückgängig machen.`,
    deleteButton: 'Endgültig löschen',
    empty: 'Papierkorb leeren',
    emptyAsk: (count) => `${bookmarks(count)} endgültig löschen? Das lässt sich nicht rückgängig machen.`,
    emptyAskAll: 'Alles im Papierkorb endgültig löschen? Das lässt sich nicht rückgängig machen.',
    emptied: (count) => `${bookmarks(count)} endgültig gelöscht.`,
  },

  suggestions: 'Vorschläge',
  operators: {
    'tag:': 'Mit diesem Tag. #Name bewirkt dasselbe',
    '-tag:': 'Ohne dieses Tag',
    'under:': 'Mit diesem Tag oder einem darunter, etwa Arbeit/a unter Arbeit',
    'site:': 'Von dieser Website, zum Beispiel site:example.org',
    'before:': 'Vor diesem Tag gespeichert, zum Beispiel before:2026-01-31',
    'after:': 'An diesem Tag oder später gespeichert, zum Beispiel after:2026',
    'is:untagged': 'Ohne Tags',
    '"': 'Eine genaue Wortfolge, zum Beispiel "Sein oder Nichtsein"',
  },

  profile: {
    title: 'Konto',
    lead: 'Dein Konto bei diesem Dienst.',
    email: 'E-Mail-Adresse',
    plan: 'Tarif',
    premium: 'Premium: beliebig viele Lesezeichen',
    free: 'Kostenlos',
    since: 'Seit',
    count: 'Lesezeichen',
  },

  import: {
    title: 'Import',
    lead: 'Importiere Lesezeichen aus einem Browser oder von einem anderen Dienst. Dein Browser liest die Datei zuerst und zeigt, was darin ist.',
    choose: 'Datei auswählen oder hier ablegen',
    formats:
      'HTML aus jedem Browser; JSON von diesem Dienst, Firefox, Linkwarden, Karakeep, Omnivore oder wallabag; Exporte ' +
      'von Pinboard, Raindrop, linkding, Pocket und Instapaper; die Datei „Bookmarks“ von Chrome; CSV mit einer Spalte „url“',
    folders: 'Ordner werden zu Tags',
    reading: (name) => `${name} wird gelesen …`,
    names: {
      'bookmark-service': 'einem Export dieses Dienstes',
      netscape: 'der Lesezeichen-Datei eines Browsers',
      pinboard: 'einem Export von Pinboard',
      raindrop: 'einem Export von Raindrop',
      linkding: 'einem Export von linkding',
      linkwarden: 'einer Sicherung von Linkwarden',
      karakeep: 'einem Export von Karakeep',
      pocket: 'einem Export von Pocket',
      instapaper: 'einem Export von Instapaper',
      omnivore: 'einem Export von Omnivore',
      wallabag: 'einem Export von wallabag',
      firefox: 'einer Sicherung von Firefox',
      chrome: 'der Datei „Bookmarks“ von Chrome',
      onetab: 'einer Liste von OneTab',
      buku: 'einem Export von buku',
      csv: 'einer CSV-Tabelle',
      json: 'einer JSON-Liste',
    },
    willRefuse: (count) =>
      count === 1
        ? '1 Eintrag lässt sich nicht importieren'
        : `${number(count)} Einträge lassen sich nicht importieren`,
    known: (count) =>
      count === 1 ? '1 dieser Adressen hast du schon' : `${number(count)} dieser Adressen hast du schon`,
    holds: (count, what) => `${bookmarks(count)} in ${what}`,
    tags: (count) => (count === 1 ? 'Mit 1 Tag' : `Mit ${number(count)} Tags`),
    foldersToTags: (count) =>
      count === 1 ? '1 Ordner wird zu einem Tag' : `${number(count)} Ordner werden zu Tags`,
    folder: (path, tag, count) => `${path}: Tag ${tag}, ${bookmarks(count)}`,
    andMore: (count) => `und ${number(count)} weitere`,
    combined: (count) =>
      count === 1
        ? '1 doppelter Eintrag wird zusammengefasst'
        : `${number(count)} doppelte Einträge werden zusammengefasst`,
    leftOut: (count) =>
      count === 1 ? '1 Eintrag wird ausgelassen' : `${number(count)} Einträge werden ausgelassen`,
    omissions: {
      'no-url': 'ohne Adresse',
      'not-web': 'keine Webseite',
      'bad-url': 'ungültige Adresse',
      trash: 'im Papierkorb',
      truncated: 'die Datei endet mitten im Eintrag',
      'no-entry': 'kein Lesezeichen',
    },
    changed: (count) => (count === 1 ? '1 Text wird geändert' : `${number(count)} Texte werden geändert`),
    changes: {
      'title-shortened': 'Titel gekürzt, der Rest steht im Kommentar',
      'comment-shortened': 'Kommentar gekürzt',
      'tag-shortened': 'Tag gekürzt',
      'folder-shortened': 'Pfad von Ordnern gekürzt',
      'tags-dropped': 'Tags nach den ersten 100 weggelassen',
      'date-dropped': 'unlesbares Datum weggelassen',
      'value-dropped': 'Wert weggelassen, der kein Text ist',
      'bytes-replaced': 'unlesbare Zeichen ersetzt',
    },
    unknownFields: (names) => `Nicht gelesen: ${names}`,
    guessedEncoding: (encoding) => `Als ${encoding} gelesen, weil die Datei nicht UTF-8 ist`,
    tooMany: (count, cap) =>
      `Die Datei hat ${bookmarks(count)}. Dein Tarif erlaubt ${number(cap)}. Nichts wurde hochgeladen.`,
    mayNotFit: (count, cap, free) =>
      `Du hast ${number(count)} von ${number(cap)} Lesezeichen. Es passen also noch ${number(free)} neue. Adressen, die du schon hast, zählen nicht.`,
    mode: 'Deine vorhandenen Lesezeichen',
    merge: 'Behalten. Neue kommen hinzu. Adressen, die du schon hast, werden übersprungen.',
    replace: 'Alle durch die Datei ersetzen. Die alten bleiben eine Zeit lang im Papierkorb.',
    replaceWord: 'ersetzen',
    typeToReplace: (word, count) =>
      `Damit kommen ${bookmarks(count)} in den Papierkorb. Tippe zur Bestätigung „${word}“`,
    notConfirmed: (word) => `Tippe „${word}“ in das Feld, um zu bestätigen.`,
    start: (count) => `${bookmarks(count)} importieren`,
    running: (done, count) => `Import läuft … ${number(done)} von ${bookmarks(count)}`,
    stay: 'Lass diese Seite offen, bis der Import fertig ist.',
    imported: (count) => `${bookmarks(count)} importiert`,
    skipped: (count) => `${number(count)} übersprungen, weil du sie schon hast.`,
    see: 'Deine Lesezeichen ansehen',
    refused: (count) => `${number(count)} nicht importiert`,
    what: 'Eintrag',
    why: 'Grund',
    downloadRefused: 'Diese Tabelle herunterladen',
    unreadable: (message) => `Diese Datei lässt sich nicht importieren: ${message}.`,
  },

  export: {
    title: 'Export',
    lead: 'Lade alle deine Lesezeichen als Datei herunter. Browser importieren HTML. Tabellenprogramme öffnen CSV. JSON behält alles.',
    json: 'JSON exportieren',
    html: 'HTML exportieren',
    csv: 'CSV exportieren',
    running: (count) => `bisher ${bookmarks(count)} …`,
    done: (count) => `${bookmarks(count)} exportiert.`,
  },

  bookmarklet: {
    title: 'Von jeder Seite speichern',
    lead: 'Zieh diesen Link in die Lesezeichenleiste deines Browsers. Ein Klick darauf speichert die Seite, auf der du gerade bist.',
    link: 'Lesezeichen speichern',
    code: 'Oder lege selbst ein Lesezeichen mit dieser Adresse an',
  },

  tokens: {
    title: 'API-Token',
    lead: 'Mit einem Token nutzt ein Skript oder ein anderes Programm deine Lesezeichen über die API.',
    none: 'Keine Token.',
    name: 'Name',
    nameMissing: 'Gib dem Token einen Namen, an dem du es später erkennst.',
    scope: 'Rechte',
    read: 'Lesen',
    write: 'Lesen und schreiben',
    expires: 'Ablauf',
    days: { 7: '7 Tage', 30: '30 Tage', 90: '90 Tage', 365: '1 Jahr', '': 'Nie' },
    create: 'Token erstellen',
    token: (name) => `Token ${name}`,
    once: 'Kopiere es jetzt. Es wird nur einmal angezeigt.',
    copy: 'Kopieren',
    copied: 'Kopiert',
    tryIt: 'Mit curl ausprobieren',
    revoke: 'Widerrufen',
    revokeAsk: (name) =>
      `Das Token „${name}“ widerrufen? Programme, die es benutzen, verlieren sofort den Zugriff. Das lässt sich nicht rückgängig machen.`,
    revokeNamed: (name) => `Token ${name} widerrufen`,
    ends: (four) => `…${four}`,
    created: (when) => `erstellt ${when}`,
    expiresOn: (when) => `läuft ab ${when}`,
    neverExpires: 'läuft nie ab',
    used: (when) => `zuletzt benutzt ${when}`,
    unused: 'noch nicht benutzt',
  },

  sessions: {
    title: 'Sitzungen',
    lead: 'Die Browser und Programme, die bei deinem Konto angemeldet sind.',
    unknown: 'Unbekanntes Programm',
    current: 'diese Sitzung',
    since: (when) => `seit ${when}`,
    used: (when) => `zuletzt benutzt ${when}`,
    end: 'Abmelden',
    endNamed: (what, when) => `${what}, seit ${when}, abmelden`,
    endOthers: 'Alle anderen abmelden',
    ended: (count) => `${number(count)} abgemeldet.`,
  },

  device: {
    title: 'Ein anderes Gerät anmelden',
    lead: 'Scanne auf dem anderen Gerät den QR-Code, öffne den Link oder gib den Code ein. Zeig ihn sonst niemandem.',
    qr: 'QR-Code des Links',
    link: 'Link',
    until: (when) => `Gilt einmal, bis ${when}.`,
    expired: 'Der Code ist abgelaufen.',
    used: (name) => `Angemeldet: ${name}.`,
  },

  passkeys: {
    title: 'Passkeys',
    lead: 'Melde dich mit Fingerabdruck, Gesicht, PIN oder Sicherheitsschlüssel an, auf jedem Gerät mit dem Passkey.',
    needsName:
      'Passkeys brauchen einen Hostnamen, diese Seite hat aber eine IP-Adresse. Wer diesen Dienst betreibt, kann ihr einen Namen geben.',
    openByName:
      'Passkeys brauchen einen Hostnamen, diese Seite hat aber eine IP-Adresse. Öffne sie unter ihrem Namen:',
    unsupported: 'Dieser Browser kann keine Passkeys verwenden.',
    offer: 'Füge einen Passkey hinzu, damit du dich ohne Einladungscode wieder anmelden kannst.',
    add: 'Passkey hinzufügen',
    added: 'Passkey hinzugefügt.',
    name: 'Name des Passkeys',
    reasons: {
      InvalidStateError: 'Kein Passkey hinzugefügt: Dieses Gerät hat schon einen für dein Konto.',
      NotAllowedError: 'Kein Passkey hinzugefügt: Es wurde abgebrochen oder hat zu lange gedauert.',
      NotSupportedError:
        'Kein Passkey hinzugefügt: Dieses Gerät kann keinen erstellen, den der Dienst annimmt.',
      ConstraintError:
        'Kein Passkey hinzugefügt: Dieses Gerät kann nicht prüfen, dass du es bist. Richte zum Beispiel eine PIN ein.',
      SecurityError: 'Kein Passkey hinzugefügt: Der Browser erlaubt es an dieser Adresse nicht.',
      other: 'Kein Passkey hinzugefügt: Der Browser konnte keinen erstellen.',
    },
    refused:
      'Kein Passkey hinzugefügt: Der Dienst nimmt ihn nicht an, oder es hat mehr als fünf Minuten gedauert.',
    remove: 'Entfernen',
    removeNamed: (name, day) => `Passkey ${name}, hinzugefügt ${day}, entfernen`,
    unknown: 'Passkey',
    since: (day) => `hinzugefügt ${day}`,
    used: (when) => `benutzt ${when}`,
    sessionOld:
      'Dafür musst du dich vor Kurzem angemeldet haben. Melde dich ab und wieder an. Versuche es dann erneut.',
    lastOne: 'Nur so kannst du dich noch anmelden. Füge zuerst einen anderen Passkey hinzu.',
  },

  lockOut: {
    title: 'Du könntest dich aussperren',
    lead: 'Du bist sonst nirgends angemeldet. Für eine neue Anmeldung bräuchtest du einen neuen Einladungscode.',
    confirm: 'Trotzdem abmelden',
  },

  deleteAccount: {
    title: 'Konto löschen',
    lead: 'Löscht dein Konto mit allen Lesezeichen, Tags und Token endgültig. Exportiere deine Lesezeichen vorher.',
    confirm: (email) => `Tippe zur Bestätigung ${email}`,
    notConfirmed: (email) => `Tippe ${email} in das Feld, um zu bestätigen.`,
  },

  keys: {
    title: 'Tastenkürzel',
    lead: 'Diese Tasten wirken auf die Liste der Lesezeichen, aber nicht beim Tippen. Die Einstellung gilt für diesen Browser.',
    use: 'Tastenkürzel verwenden',
    list: [
      ['/', 'suchen'],
      ['n', 'Lesezeichen hinzufügen'],
      ['j  k', 'nächstes und voriges Lesezeichen'],
      ['Enter', 'Lesezeichen öffnen'],
      ['e', 'bearbeiten'],
      ['x', 'auswählen oder Auswahl aufheben'],
      ['Delete', 'löschen'],
      ['z', 'letztes Löschen rückgängig machen'],
      ['?', 'diese Liste anzeigen'],
    ],
    change: 'Tastenkürzel abschalten',
  },

  appearance: {
    title: 'Darstellung',
    lead: 'Diese Einstellungen gelten für diesen Browser.',
    theme: 'Farbschema',
    themes: { '': 'Wie das System', light: 'Hell', dark: 'Dunkel' },
    rows: 'Zeilen',
    language: 'Sprache',
    asBrowser: 'Wie der Browser',
    heights: { '': 'Normal', compact: 'Kompakt: nur Titel und Tags' },
  },
};
