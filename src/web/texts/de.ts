import type { Texts } from './en.ts';
import { number } from './language.ts';

/** The German texts that the first load of the page needs. */

const bookmarks = (count: number): string => `${number(count)} Lesezeichen`;

export const de: Texts = {
  name: 'Lesezeichen',
  number,
  bookmarks,
  skip: 'Zum Inhalt springen',
  cancel: 'Abbrechen',
  close: 'Schließen',
  tryAgain: 'Erneut versuchen',
  undo: 'Rückgängig',

  signInNeeded: 'Du bist abgemeldet. Melde dich erneut an, um fortzufahren.',

  menu: { bookmarks: 'Lesezeichen', settings: 'Einstellungen', signOut: 'Abmelden', label: 'Hauptmenü' },

  search: {
    label: 'Lesezeichen durchsuchen',
    placeholder: 'Suchen, tag:Name, site:example.org',
    hint: 'Wörter und "Wortfolgen" werden in Adresse, Titel und Kommentar gesucht. tag:Name, under:Name, site:example.org, before:2026-01-31, after:2026 und is:untagged grenzen die Suche ein. Ein Minus schließt ein Wort, eine Wortfolge oder ein Tag aus. OR findet eines von beiden.',
    clear: 'Suche leeren',
    offer: (count, tag) => `${bookmarks(count)} mit dem Tag ${tag}`,
    problems: {
      unknown: (part) =>
        `Den Suchfilter „${part.replace(/^-/, '').split(':')[0]}:“ gibt es nicht. „${part}“ wird als Text gesucht.`,
      minus: (part) =>
        `Nur Wörter, Wortfolgen und Tags lassen sich ausschließen. „${part}“ wird als Text gesucht.`,
      or: (part) => `OR verbindet bis zu zehn Wörter, Wortfolgen oder Tags. „${part}“ wird als Text gesucht.`,
      value: (part) => `„${part}“ ist kein gültiger Filter und wird als Text gesucht.`,
      untagged: (part) => `„${part}“ lässt sich nicht mit einem Tag kombinieren und wird ignoriert.`,
    },
    partial: (count) =>
      `Der Dienst ist nicht erreichbar. Durchsucht werden nur die ${bookmarks(count)}, die diese Seite geladen hat.`,
    found: (count) => (count === 0 ? 'Nichts gefunden' : `${bookmarks(count)} gefunden`),
    order: 'Reihenfolge',
    orders: {
      newest: 'Hinzugefügt: neueste zuerst',
      oldest: 'Hinzugefügt: älteste zuerst',
      created: 'Datum: neueste zuerst',
      created_oldest: 'Datum: älteste zuerst',
      updated: 'Zuletzt bearbeitet',
      title: 'Nach Titel',
    },
  },

  list: {
    more: 'Mehr laden',
    loading: 'Wird geladen …',
    ofCap: (count, cap) => `${number(count)} von ${number(cap)} Lesezeichen`,
    end: 'Ende der Liste.',
    empty: 'Noch keine Lesezeichen',
    emptyHelp: 'Füge dein erstes Lesezeichen hinzu oder importiere die Lesezeichen deines Browsers.',
    import: 'Lesezeichen importieren',
    none: 'Nichts gefunden',
    noneHelp: 'Kein Lesezeichen passt zu deiner Suche. Versuche es mit weniger Wörtern.',
    untitled: 'Ohne Titel',
    edit: (title) => `„${title}“ bearbeiten`,
    delete: (title) => `„${title}“ löschen`,
    select: (title) => `„${title}“ auswählen`,
    filterBy: (tag) => `Nur das Tag ${tag} anzeigen`,
    moreTags: (count) => `+${count}`,
    failed: 'Die Liste konnte nicht geladen werden.',
  },

  editor: {
    add: 'Lesezeichen hinzufügen',
    addShort: 'Hinzufügen',
    edit: 'Lesezeichen bearbeiten',
    url: 'Adresse',
    title: 'Titel',
    tagsHint: 'Drücke nach jedem Tag die Eingabetaste oder tippe ein Komma.',
    comment: 'Kommentar',
    save: 'Speichern',
    saving: 'Wird gespeichert …',
    added: 'Hinzugefügt.',
    saved: 'Gespeichert.',
    known: (title, when) => `„${title}“ hast du schon gespeichert, ${when}.`,
    editKnown: 'Bearbeiten',
    removeTag: (tag) => `Tag ${tag} entfernen`,
    suggestions: 'Deine Tags',
    wrongUrl:
      'Das ist keine Webadresse. Eine Webadresse beginnt mit http:// oder https://, zum Beispiel https://example.org/',
    unreached: 'Der Dienst ist nicht erreichbar. Dein Text geht nicht verloren.',
    later: 'Speichern, sobald online',
    kept: 'Auf diesem Gerät vorgemerkt. Es wird gespeichert, sobald du online bist.',
    waiting: 'Sobald du online bist, wird dein Text gespeichert.',
    noSpace: 'Dieser Browser hat keinen Platz mehr. Nichts wurde vorgemerkt.',
    gone: 'Dieses Lesezeichen wurde anderswo gelöscht. Dein Text ist noch hier. Speichere ihn, um es neu anzulegen.',
    changed:
      'Dieses Lesezeichen wurde anderswo geändert, während du es bearbeitet hast. Speichern ändert nur die Felder, die du bearbeitet hast.',
    labels: { url: 'Adresse', title: 'Titel', comment: 'Kommentar', tags: 'Tags' },
    differs: (field, here, there) => `${field}: hier „${here}“, anderswo „${there}“`,
    discardAsk: 'Deine Eingaben verwerfen?',
    discard: 'Verwerfen',
  },

  deleted: (count, title) => (count === 1 ? `„${title}“ gelöscht.` : `${bookmarks(count)} gelöscht.`),
  notDeleted: (reason) => `Die Lesezeichen wurden nicht gelöscht. ${reason}`,
  restored: (count, of) =>
    count === of
      ? 'Wiederhergestellt.'
      : `${number(count)} von ${bookmarks(of)} wiederhergestellt. Die übrigen sind nicht mehr im Papierkorb.`,
  notRestored: (reason) => `Die Lesezeichen wurden nicht wiederhergestellt. ${reason}`,
  trash: 'Papierkorb',

  tags: {
    title: 'Tags',
    all: 'Alle Lesezeichen',
    find: 'Tag suchen',
    untagged: 'Ohne Tags',
    none: 'Hier erscheinen die Tags deiner Lesezeichen.',
    manage: 'Tags bearbeiten',
    count: (name, count) => `${name}, ${bookmarks(count)}`,
    under: (path, count) => `${path} und die Tags darunter, ${number(count)}`,
    shown: (shown, count) => `${number(shown)} von ${number(count)} Tags angezeigt`,
    below: (path) => `Tags unter ${path}`,
  },

  selection: {
    label: 'Ausgewählte Lesezeichen',
    count: (count) => `${number(count)} ausgewählt`,
    all: (count) => `Alle ${number(count)}`,
    reading: (done, count) => `${number(done)} von ${number(count)} gelesen …`,
    tag: 'Hinzufügen',
    untag: 'Entfernen',
    tagName: 'Tag',
    delete: 'Löschen',
    clear: 'Aufheben',
    tagged: (count, tag) => `Tag „${tag}“ zu ${bookmarks(count)} hinzugefügt.`,
    untagged: (count, tag) => `Tag „${tag}“ von ${bookmarks(count)} entfernt.`,
  },

  connection: {
    offline:
      'Du bist offline. Die Liste ist vielleicht nicht aktuell. Sie wird aktualisiert, sobald du online bist.',
    unreachable: 'Der Dienst ist nicht erreichbar. Neuer Versuch …',
    busy: (seconds) => `Der Dienst ist ausgelastet. Neuer Versuch in ${number(seconds)} s.`,
    limited: (time) => `Zu viele Anfragen. Um ${time} geht es weiter.`,
  },

  errors: {
    lost: 'Der Dienst war nicht erreichbar. Prüfe deine Verbindung und versuche es erneut.',
    unavailable: 'Der Dienst ist nicht verfügbar. Versuche es gleich noch einmal.',
    limited: 'Zu viele Anfragen. Warte einen Moment und versuche es erneut.',
    internal:
      'Der Dienst hat einen Fehler. Versuche es erneut. Wenn es wieder passiert, sag es der Person, die den Dienst betreibt.',
    gone: 'Das gibt es nicht mehr. Es wurde anderswo gelöscht.',
    full: (message) => `Dein Konto ist voll: ${message}.`,
    suspended:
      'Dein Konto ist gesperrt. Nichts darin ist gelöscht. Wende dich an die Person, die diesen Dienst betreibt.',
    denied: (message) => `Das ist nicht erlaubt: ${message}.`,
    invalid: (message) => `Der Dienst hat das nicht angenommen: ${message}.`,
    unexpected: 'Auf dieser Seite ist etwas schiefgegangen. Lade sie neu und versuche es noch einmal.',
  },
};
