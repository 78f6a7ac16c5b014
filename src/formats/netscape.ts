import { Parser } from 'htmlparser2';
import type { ForeignBookmark, ForeignFile, Format } from './entry.ts';
import { GENERATOR } from './write-netscape.ts';

/**
 * Reads bookmark files in the HTML format of browsers, which Pinboard, Raindrop, linkding and Pocket extend.
 * `<DT><H3>` names a folder, and the `<DL>` after it contains the folder's entries. `<DT><A HREF>` is a bookmark, and
 * the `<DD>` after it is the bookmark's description.
 */

type Attributes = Record<string, string>;

/**
 * Whether a browser or a service created a folder by itself. The name of such a folder says nothing about the folder's
 * bookmarks.
 */
const isBuiltInFolder = (attributes: Attributes): boolean =>
  attributes.personal_toolbar_folder === 'true' || attributes.unfiled_bookmarks_folder === 'true';

/** Parses the bookmarks of a file, in order. Tolerates missing and unclosed elements. */
export function parseNetscape(html: string): ForeignFile {
  const reader = new NetscapeReader();
  const parser = new Parser({
    onopentag: (name, attributes) => reader.open(name, attributes),
    ontext: (text) => reader.text(text),
    onclosetag: (name) => reader.close(name),
  });
  parser.end(html);
  return { format: reader.format, bookmarks: reader.finish() };
}

/** The text of an element, which grows while the file is read. */
interface Text {
  text: string;
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
  /** In Pocket's file, the heading of the bookmark's list. Empty in other files. */
  section: string;
  title: Text;
  description: Text;
}

class NetscapeReader {
  readonly #drafts: Draft[] = [];
  /** The folder of each open `<DL>`, outermost first. Null if the name of the folder must not become a tag. */
  readonly #folders: (string | null)[] = [];
  /** The `<H3>` that names the next `<DL>`. */
  #heading: Heading | undefined;
  readonly #pageTitle: Text = { text: '' };
  #isFromThisService = false;
  /** The text that is being read. Undefined while text is ignored. */
  #target: Text | undefined;
  /** The heading of one of Pocket's lists: `Unread` or `Read Archive`. */
  #section: Text = { text: '' };
  /** The bookmark that the next description belongs to. */
  #latest: Draft | undefined;

  /** The format of the file. Pocket's `ril_export.html` has lists below headings instead of folders. */
  get format(): Format {
    return this.#pageTitle.text.trim() === 'Pocket Export' ? 'pocket' : 'netscape';
  }

  open(name: string, attributes: Attributes): void {
    switch (name) {
      case 'meta':
        this.#isFromThisService ||= attributes.name === 'generator' && attributes.content === GENERATOR;
        break;
      case 'title':
        this.#target = this.#pageTitle;
        break;
      case 'h1':
        this.#section = { text: '' };
        this.#target = this.#section;
        break;
      case 'h3':
        this.#heading = { attributes, name: { text: '' } };
        this.#latest = undefined;
        this.#target = this.#heading.name;
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
        this.#target = this.#latest?.description;
        break;
      case 'br':
        if (this.#isInDescription()) this.text('\n');
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
    const endsTarget =
      (name === 'a' && this.#target === this.#latest?.title) ||
      (name === 'h3' && this.#target === this.#heading?.name) ||
      (name === 'title' && this.#target === this.#pageTitle) ||
      (name === 'h1' && this.#target === this.#section);
    if (endsTarget) this.#target = undefined;
  }

  text(text: string): void {
    if (this.#target !== undefined) this.#target.text += text;
  }

  finish(): ForeignBookmark[] {
    return this.#drafts.map((draft) => this.#toBookmark(draft));
  }

  #isInDescription(): boolean {
    return this.#target !== undefined && this.#target === this.#latest?.description;
  }

  #openLink(attributes: Attributes): void {
    // A link inside a description is part of the description.
    if (attributes.href === undefined || this.#isInDescription()) return;
    this.#latest = {
      url: attributes.href,
      attributes,
      folders: this.#folders.filter((folder) => folder !== null),
      section: this.format === 'pocket' ? this.#section.text.trim() : '',
      title: { text: '' },
      description: { text: '' },
    };
    this.#drafts.push(this.#latest);
    this.#target = this.#latest.title;
  }

  #folderOf(heading: Heading | undefined): string | null {
    if (heading === undefined || isBuiltInFolder(heading.attributes)) return null;
    const name = heading.name.text;
    // Raindrop puts bookmarks that are in no collection into the folder `Unsorted`.
    return this.#pageTitle.text.includes('Raindrop.io') && name === 'Unsorted' ? null : name;
  }

  #toBookmark({ url, attributes, folders, section, title, description }: Draft): ForeignBookmark {
    const tags = splitTags(attributes.tags ?? '');
    return {
      url,
      title: title.text,
      comment: this.#isFromThisService ? [description.text] : readDescription(description.text),
      folders: [folders],
      tags: [
        ...tags.map((tag) => (ARCHIVED_MARKS.has(tag) && !this.#isFromThisService ? 'archived' : tag)),
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
