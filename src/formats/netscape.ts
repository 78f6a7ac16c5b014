import { Parser } from 'htmlparser2';
import type { ForeignBookmark, Format } from './entry.ts';
import { GENERATOR } from './write-netscape.ts';

/**
 * Reads the HTML bookmark file of browsers, which Pinboard, Raindrop, linkding and Pocket extend. `<DT><H3>` names a
 * folder, and the `<DL>` after it contains the folder's entries. `<DT><A HREF>` is a bookmark, and the `<DD>` after
 * it is its description.
 */

type Attributes = Record<string, string>;

/** True for folders that the browser or service created. Their names say nothing about their bookmarks. */
const isOwnFolder = (attributes: Attributes): boolean =>
  attributes.personal_toolbar_folder === 'true' || attributes.unfiled_bookmarks_folder === 'true';

/** Parses the bookmarks of a file, in order. Tolerates missing and unclosed elements. */
export function parseNetscape(html: string): { format: Format; bookmarks: ForeignBookmark[] } {
  const reader = new NetscapeReader();
  const parser = new Parser({
    onopentag: (name, attributes) => reader.open(name, attributes),
    ontext: (text) => reader.text(text),
    onclosetag: (name) => reader.close(name),
  });
  parser.end(html);
  return { format: reader.format, bookmarks: reader.finish() };
}

interface Draft {
  attributes: Attributes;
  folders: string[];
  section: string;
  title: string;
  description: string;
}

class NetscapeReader {
  readonly #drafts: Draft[] = [];
  /** The folder of each open list. Null if it does not become a tag. */
  readonly #folders: (string | null)[] = [];
  #heading: { attributes: Attributes; name: string } | undefined;
  #pageTitle = '';
  #isOwn = false;
  /** The element that receives the current text. */
  #target: 'title' | 'heading' | 'description' | 'page' | 'section' | undefined;
  /** The heading of one of Pocket's lists: `Unread` or `Read Archive`. */
  #section = '';
  /** The bookmark that the next description belongs to. */
  #latest: Draft | undefined;

  /** Pocket's `ril_export.html` has lists below headings instead of folders. */
  get format(): Format {
    return this.#pageTitle.trim() === 'Pocket Export' ? 'pocket' : 'netscape';
  }

  open(name: string, attributes: Attributes): void {
    switch (name) {
      case 'meta':
        this.#isOwn ||= attributes.name === 'generator' && attributes.content === GENERATOR;
        break;
      case 'title':
        this.#target = 'page';
        break;
      case 'h1':
        this.#section = '';
        this.#target = 'section';
        break;
      case 'h3':
        this.#heading = { attributes, name: '' };
        this.#latest = undefined;
        this.#target = 'heading';
        break;
      case 'dl':
        this.#folders.push(this.#folderOf(this.#heading));
        this.#heading = undefined;
        this.#target = undefined;
        break;
      case 'a':
        this.#openLink(attributes);
        break;
      case 'dd':
        this.#target = this.#latest === undefined ? undefined : 'description';
        break;
      case 'br':
        if (this.#target === 'description') this.text('\n');
        break;
      case 'dt':
      case 'hr':
        this.#target = undefined;
        break;
    }
  }

  close(name: string): void {
    if (name === 'dl') {
      this.#folders.pop();
      this.#latest = undefined;
      this.#target = undefined;
    }
    const isOver =
      (name === 'a' && this.#target === 'title') ||
      (name === 'h3' && this.#target === 'heading') ||
      (name === 'title' && this.#target === 'page') ||
      (name === 'h1' && this.#target === 'section');
    if (isOver) this.#target = undefined;
  }

  text(text: string): void {
    if (this.#target === 'page') this.#pageTitle += text;
    if (this.#target === 'section') this.#section += text;
    if (this.#target === 'heading') this.#heading!.name += text;
    if (this.#target === 'title') this.#latest!.title += text;
    if (this.#target === 'description') this.#latest!.description += text;
  }

  finish(): ForeignBookmark[] {
    return this.#drafts.map((draft) => this.#toBookmark(draft));
  }

  #openLink(attributes: Attributes): void {
    // A link inside a description is part of the description.
    if (attributes.href === undefined || this.#target === 'description') return;
    const folders = this.#folders.filter((folder) => folder !== null);
    const section = this.format === 'pocket' ? this.#section.trim() : '';
    this.#latest = { attributes, folders, section, title: '', description: '' };
    this.#drafts.push(this.#latest);
    this.#target = 'title';
  }

  #folderOf(heading: { attributes: Attributes; name: string } | undefined): string | null {
    if (heading === undefined || isOwnFolder(heading.attributes)) return null;
    // Raindrop's folder for bookmarks outside all collections.
    if (this.#pageTitle.includes('Raindrop.io') && heading.name === 'Unsorted') return null;
    return heading.name;
  }

  #toBookmark({ attributes, folders, section, title, description }: Draft): ForeignBookmark {
    const tags = splitTags(attributes.tags ?? '');
    return {
      url: attributes.href!,
      title,
      comment: this.#isOwn ? [description] : readDescription(description),
      folders: [folders],
      tags: [
        ...tags.map((tag) => (ARCHIVED_MARKS.has(tag) && !this.#isOwn ? 'archived' : tag)),
        ...(attributes.toread === '1' || section === 'Unread' ? ['toread'] : []),
        ...(section === 'Read Archive' ? ['archived'] : []),
        ...(attributes['data-important'] === 'true' ? ['favorite'] : []),
      ],
      createdAt: attributes.add_date ?? attributes.time_added,
      updatedAt: attributes.last_modified,
    };
  }
}

/** The tags that linkding adds to an archived bookmark. */
const ARCHIVED_MARKS = new Set(['linkding:archived', 'linkding:bookmarks.archived']);

const splitTags = (text: string): string[] => text.split(',').map((tag) => tag.trim());

/**
 * Splits a description into paragraphs. linkding marks its notes inside the description. Pinboard may wrap the text
 * in a quotation.
 */
export function readDescription(text: string): string[] {
  const [description = '', notes = ''] = text.split('[linkding-notes]');
  const [note = ''] = notes.split('[/linkding-notes]');
  return [description.trim().replace(/^<blockquote>([\s\S]*)<\/blockquote>$/, '$1'), note];
}
