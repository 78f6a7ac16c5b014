import type { ForeignBookmark, ForeignFile, Format } from './entry.ts';
import { decodeText, readMarkup, type Tag } from './markup.ts';
import { GENERATOR } from './write-netscape.ts';

/**
 * Reads bookmark files in the HTML format of browsers, which many services extend. `<H3>` names a folder, and the
 * `<DL>` after it contains the folder's entries. `<A HREF>` is a bookmark, and the `<DD>` after it is the bookmark's
 * description. Most programs write `<DT>` before a folder or a bookmark.
 */

type Attributes = Record<string, string>;

/** The tags that structure a file, except `<A>`. */
const STRUCTURE = ['h1', 'h3', 'dl', 'dt', 'dd', 'hr'];

/** The tags that begin a paragraph in a description. */
const PARAGRAPHS = ['p', 'li'];

/** The tags that format a text. They are removed from titles and descriptions. */
const INLINE = [
  ...['b', 'i', 'u', 's', 'em', 'strong', 'small', 'big', 'sub', 'sup', 'tt', 'code', 'span', 'font', 'mark'],
  ...['blockquote', 'ul', 'ol'],
];

const TAGS: ReadonlySet<string> = new Set(['a', 'br', ...STRUCTURE, ...PARAGRAPHS, ...INLINE]);

/** Parses the bookmarks of a file, in order. Tolerates missing, unclosed and unescaped elements. */
export function parseNetscape(html: string): ForeignFile {
  const markup = html.replace(/\r\n?/g, '\n').replace(/(?:<\/(?:html|body)>\s*)+$/i, '');
  const bodyStart = markup.search(/<(?:h1|h3|dl|dt|a)\b/i);
  const head = bodyStart < 0 ? markup : markup.slice(0, bodyStart);
  const reader = new NetscapeReader(head);
  for (const token of readMarkup(markup.slice(head.length), TAGS)) {
    if (typeof token === 'string') reader.text(token);
    else if (reader.isText(token)) reader.text(`<${token.isClosing ? '/' : ''}${token.name}>`);
    else if (token.isClosing) reader.close(token.name);
    else reader.open(token);
  }
  return { format: reader.format, bookmarks: reader.finish() };
}

/** Joins the lines of a title. Only raw line breaks count: a program that means a line break writes `&#10;`. */
const toOneLine = (raw: string): string =>
  decodeText(
    raw
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
      .join(' '),
  );

/** Whether only white space follows the last line break of a text. */
const endsAtLineStart = (raw: string): boolean => raw.slice(raw.trimEnd().length).includes('\n');

/** The text of an element, which grows while the file is read. It is not decoded yet. */
interface Text {
  raw: string;
}

interface Heading {
  attributes: Attributes;
  name: Text;
}

/** A bookmark whose text is still being read. */
interface Draft {
  url: string;
  attributes: Attributes;
  /** The path of the bookmark's folder, outermost first. */
  folders: string[];
  /** In files with lists instead of folders, the heading of the bookmark's list. Empty in other files. */
  section: string;
  isTruncated: boolean;
  title: Text;
  description: Text;
}

/** The attributes that a program writes only for a bookmark, and not for a link in a description. */
const BOOKMARK_ATTRIBUTES = ['add_date', 'last_modified', 'time_added', 'tags', 'private', 'toread', 'icon'];

class NetscapeReader {
  readonly format: Format;
  readonly #isFromThisService: boolean;
  readonly #isFromRaindrop: boolean;
  readonly #drafts: Draft[] = [];
  /** The folder of each open `<DL>`, outermost first. Null if the name of the folder must not become a tag. */
  readonly #folders: (string | null)[] = [];
  /** The `<H3>` that names the next `<DL>`. */
  #heading: Heading | undefined;
  /** The text that is being read. Undefined while text is ignored. */
  #target: Text | undefined;
  /** The heading of a list in a file of Pocket or Instapaper. */
  #section: Text = { raw: '' };
  /** The bookmark that the next description belongs to. */
  #latest: Draft | undefined;
  /** The link in a description that is being read: its address, and where its text begins. */
  #link: { href: string; start: number } | undefined;
  #isAfterDt = false;
  /** Whether a bookmark before this place of the file has no `<DT>`. */
  #omitsDt = false;

  constructor(head: string) {
    const title = /<title[^>]*>([^<]*)/i.exec(head)?.[1] ?? '';
    this.#isFromThisService = new RegExp(`<meta name="generator" content="${GENERATOR}"`, 'i').test(head);
    this.#isFromRaindrop = title.includes('Raindrop.io');
    // Pocket's `ril_export.html` and Instapaper's HTML have lists below headings instead of folders.
    if (title.trim() === 'Pocket Export') this.format = 'pocket';
    else this.format = title.includes('Instapaper') ? 'instapaper' : 'netscape';
  }

  /**
   * Whether a tag of the file's structure is part of a text, such as the title `The <dl> element`. Programs begin a new
   * line for each element, or write it directly before another one.
   */
  isText({ name, precedesTag }: Tag): boolean {
    const target = this.#target;
    if (target === undefined || !(STRUCTURE.includes(name) || PARAGRAPHS.includes(name))) return false;
    if (target === this.#latest?.title) return !target.raw.includes('\n') && !(name === 'dt' && precedesTag);
    if (target === this.#heading?.name) return !target.raw.includes('\n') && !(name === 'h3' || precedesTag);
    return (
      this.#isInDescription() && STRUCTURE.includes(name) && !precedesTag && !endsAtLineStart(target.raw)
    );
  }

  open({ name, attributes, isTruncated }: Tag): void {
    if (STRUCTURE.includes(name)) this.#isAfterDt = name === 'dt';
    switch (name) {
      case 'h1':
        this.#section = { raw: '' };
        this.#target = this.#section;
        break;
      case 'h3':
        this.#heading = { attributes, name: { raw: '' } };
        this.#latest = undefined;
        this.#target = this.#heading.name;
        break;
      case 'dl':
        this.#folders.push(this.#folderOf(this.#heading));
        this.#heading = undefined;
        this.#target = undefined;
        break;
      case 'a':
        this.#openLink(attributes, isTruncated);
        break;
      case 'dd':
        this.#target = this.#latest?.description;
        break;
      case 'br':
        this.text(this.#isInDescription() ? '\n' : ' ');
        break;
      case 'p':
        if (this.#isInDescription()) this.text('\n');
        break;
      case 'li':
        if (this.#isInDescription()) this.text('\n');
        else this.#beginEntry();
        break;
      case 'dt':
        this.#beginEntry();
        break;
      case 'hr':
        this.#target = undefined;
        break;
    }
  }

  close(name: string): void {
    if (name === 'a' && this.#link !== undefined) {
      this.#closeLinkInText(this.#link);
      return;
    }
    if (name === 'dl') {
      this.#folders.pop();
      this.#latest = undefined;
      this.#target = undefined;
    }
    const endsTarget =
      (name === 'a' && this.#target === this.#latest?.title) ||
      (name === 'h3' && this.#target === this.#heading?.name) ||
      (name === 'dd' && this.#isInDescription()) ||
      (name === 'h1' && this.#target === this.#section);
    if (endsTarget) this.#target = undefined;
  }

  text(text: string): void {
    if (this.#target !== undefined) this.#target.raw += text;
  }

  finish(): ForeignBookmark[] {
    return this.#drafts.map((draft) => this.#toBookmark(draft));
  }

  #isInDescription(): boolean {
    return this.#target !== undefined && this.#target === this.#latest?.description;
  }

  #beginEntry(): void {
    this.#target = undefined;
    this.#link = undefined;
  }

  #openLink(attributes: Attributes, isTruncated: boolean): void {
    // Firefox used to write feeds, some of them without a page.
    const url = attributes.href ?? attributes.feedurl;
    if (url === undefined) {
      this.text('<a>');
      return;
    }
    if (this.#isInDescription() && this.#isPartOfText(attributes)) {
      this.#link = { href: url, start: this.#target?.raw.length ?? 0 };
      return;
    }
    this.#latest = {
      url,
      attributes,
      folders: this.#folders.filter((folder) => folder !== null),
      section: this.format === 'netscape' ? '' : toOneLine(this.#section.raw).trim(),
      isTruncated,
      title: { raw: '' },
      description: { raw: '' },
    };
    this.#drafts.push(this.#latest);
    this.#target = this.#latest.title;
    this.#link = undefined;
    this.#omitsDt ||= !this.#isAfterDt;
    this.#isAfterDt = false;
  }

  /**
   * Whether a link in a description belongs to the description. Otherwise, it is the next bookmark of a program that
   * writes no `<DT>`. Such a bookmark begins a line.
   */
  #isPartOfText(attributes: Attributes): boolean {
    const beginsLine = /\n\s*$/.test(this.#target?.raw ?? '');
    const isBookmark = this.#omitsDt || BOOKMARK_ATTRIBUTES.some((name) => name in attributes);
    return !(beginsLine && isBookmark);
  }

  /** Ends a link in a description. Adds its address to the description, unless the text of the link is the address. */
  #closeLinkInText({ href, start }: { href: string; start: number }): void {
    const text = decodeText(this.#target?.raw.slice(start) ?? '').trim();
    const escaped = href.replaceAll('&', '&amp;');
    if (text !== href) this.text(text === '' ? escaped : ` (${escaped})`);
    this.#link = undefined;
  }

  #folderOf(heading: Heading | undefined): string | null {
    if (heading === undefined) return null;
    const name = toOneLine(heading.name.raw).trim();
    const isOutermost = this.#folders.every((folder) => folder === null);
    if (isOutermost && !this.#isFromThisService && this.#isBuiltIn(name, heading.attributes)) return null;
    return name;
  }

  /**
   * Whether a browser or a service created a folder by itself. The name of such a folder says nothing about the
   * folder's bookmarks.
   */
  #isBuiltIn(name: string, attributes: Attributes): boolean {
    if (attributes.personal_toolbar_folder === 'true' || attributes.unfiled_bookmarks_folder === 'true')
      return true;
    // Raindrop puts bookmarks that are in no collection into the folder `Unsorted`.
    if (this.#isFromRaindrop && name === 'Unsorted') return true;
    const hasDate = 'add_date' in attributes;
    return BROWSER_FOLDERS.has(name.toLowerCase()) || (!hasDate && SAFARI_FOLDERS.has(name.toLowerCase()));
  }

  #toBookmark(draft: Draft): ForeignBookmark {
    const { url, attributes, folders, section, title, description } = draft;
    const tags = splitTags(attributes.tags ?? '');
    const text = decodeText(description.raw);
    const sectionTag = SECTION_TAGS[section];
    const isFolder = this.format === 'instapaper' && section !== '' && sectionTag === undefined;
    return {
      url,
      title: toOneLine(title.raw),
      comment: [
        ...(this.#isFromThisService ? [text] : readDescription(text)),
        attributes.description,
        attributes.note,
        attributes.comment,
      ],
      folders: isFolder ? [[section]] : [folders],
      tags: [
        ...tags.map((tag) => (ARCHIVED_MARKS.has(tag) && !this.#isFromThisService ? 'archived' : tag)),
        ...(attributes.toread === '1' ? ['toread'] : []),
        ...(sectionTag === undefined ? [] : [sectionTag]),
        ...(attributes['data-important'] === 'true' ? ['favorite'] : []),
      ],
      createdAt: attributes.add_date ?? attributes.time_added,
      updatedAt: attributes.last_modified,
      ...(draft.isTruncated && { omission: 'truncated' }),
    };
  }
}

/** The folders that browsers create, in English and German. No user would choose such a name. */
const BROWSER_FOLDERS: ReadonlySet<string> = new Set([
  ...['bookmarks bar', 'bookmarks toolbar', 'bookmarks menu', 'other bookmarks', 'mobile bookmarks'],
  ...['unsorted bookmarks', 'unfiled bookmarks', 'favorites bar', 'favourites bar', 'other favorites'],
  ...['speed dial', 'bookmarksbar', 'bookmarksmenu', 'tab group favorites'],
  ...['lesezeichenleiste', 'lesezeichen-symbolleiste', 'lesezeichen-menü', 'lesezeichenmenü'],
  ...['weitere lesezeichen', 'mobile lesezeichen', 'favoritenleiste', 'weitere favoriten', 'schnellwahl'],
]);

/** The other folders that Safari creates. A user could choose such a name, but Safari writes no dates of folders. */
const SAFARI_FOLDERS: ReadonlySet<string> = new Set([
  ...['favorites', 'favourites', 'reading list', 'favoriten', 'leseliste'],
]);

/** The tags for the lists of Pocket and Instapaper. */
const SECTION_TAGS: Readonly<Record<string, string>> = {
  Unread: 'toread',
  'Read Archive': 'archived',
  Archive: 'archived',
  Starred: 'favorite',
  Liked: 'favorite',
};

/** The tags that linkding adds to an archived bookmark. */
const ARCHIVED_MARKS = new Set(['linkding:archived', 'linkding:bookmarks.archived']);

const splitTags = (text: string): string[] => text.split(',').map((tag) => tag.trim());

/** Matches a text that is a single `<blockquote>` element. */
const BLOCKQUOTE = /^<blockquote>(?<content>[\s\S]*)<\/blockquote>$/;

/**
 * Splits a description into paragraphs. linkding writes the bookmark's notes into the description, between markers.
 * Pinboard may put the description into a `<blockquote>`.
 */
export function readDescription(text: string): string[] {
  const [description = '', notes = ''] = text.split('[linkding-notes]');
  const [note = ''] = notes.split('[/linkding-notes]');
  return [description.trim().replace(BLOCKQUOTE, '$<content>'), note];
}
