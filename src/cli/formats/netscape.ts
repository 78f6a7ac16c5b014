import { Parser } from 'htmlparser2';
import type { ForeignBookmark } from './entry.ts';

/**
 * The bookmark file that every browser writes, and Pinboard, Raindrop and linkding with additions of their own:
 * `<DT><H3>` names a folder, the `<DL>` after it holds it, `<DT><A HREF>` is a bookmark, the `<DD>` after it its text.
 */

type Attributes = Record<string, string>;

export interface NetscapeOptions {
  /** Whether the folders that a bookmark lies in become its tags. */
  foldersAsTags: boolean;
}

/** Folders that a browser or service made itself; their names say nothing of what is in them. */
const isOwnFolder = (attributes: Attributes): boolean =>
  attributes.personal_toolbar_folder === 'true' || attributes.unfiled_bookmarks_folder === 'true';

/** The bookmarks of a file, in its order. Forgiving: what is not closed, or not there, ends nothing. */
export function parseNetscape(html: string, options: NetscapeOptions): ForeignBookmark[] {
  const reader = new NetscapeReader(options);
  const parser = new Parser({
    onopentag: (name, attributes) => reader.open(name, attributes),
    ontext: (text) => reader.text(text),
    onclosetag: (name) => reader.close(name),
  });
  parser.end(html);
  return reader.finish();
}

interface Draft {
  attributes: Attributes;
  folders: string[];
  title: string;
  description: string;
}

class NetscapeReader {
  readonly #options: NetscapeOptions;
  readonly #drafts: Draft[] = [];
  /** Of each open list, the folder it holds; null for none that counts. */
  readonly #folders: (string | null)[] = [];
  #heading: { attributes: Attributes; name: string } | undefined;
  #pageTitle = '';
  /** What text belongs to. */
  #target: 'title' | 'heading' | 'description' | 'page' | undefined;
  /** The bookmark that a description would belong to. */
  #latest: Draft | undefined;

  constructor(options: NetscapeOptions) {
    this.#options = options;
  }

  open(name: string, attributes: Attributes): void {
    switch (name) {
      case 'title':
        this.#target = 'page';
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
      (name === 'title' && this.#target === 'page');
    if (isOver) this.#target = undefined;
  }

  text(text: string): void {
    if (this.#target === 'page') this.#pageTitle += text;
    if (this.#target === 'heading') this.#heading!.name += text;
    if (this.#target === 'title') this.#latest!.title += text;
    if (this.#target === 'description') this.#latest!.description += text;
  }

  finish(): ForeignBookmark[] {
    return this.#drafts.map((draft) => this.#toBookmark(draft));
  }

  #openLink(attributes: Attributes): void {
    // A link inside of a description is a part of it.
    if (attributes.href === undefined || this.#target === 'description') return;
    const folders = this.#folders.filter((folder) => folder !== null);
    this.#latest = { attributes, folders, title: '', description: '' };
    this.#drafts.push(this.#latest);
    this.#target = 'title';
  }

  #folderOf(heading: { attributes: Attributes; name: string } | undefined): string | null {
    if (heading === undefined || isOwnFolder(heading.attributes)) return null;
    // Where Raindrop puts what lies in no collection.
    if (this.#pageTitle.includes('Raindrop.io') && heading.name === 'Unsorted') return null;
    return heading.name;
  }

  #toBookmark({ attributes, folders, title, description }: Draft): ForeignBookmark {
    const tags = splitTags(attributes.tags ?? '');
    return {
      url: attributes.href!,
      title,
      comment: readDescription(description),
      tags: [
        ...(this.#options.foldersAsTags ? folders : []),
        ...tags.map((tag) => (ARCHIVED_MARKS.has(tag) ? 'archived' : tag)),
        ...(attributes.toread === '1' ? ['toread'] : []),
        ...(attributes['data-important'] === 'true' ? ['favorite'] : []),
      ],
      createdAt: attributes.add_date,
      updatedAt: attributes.last_modified,
    };
  }
}

/** What linkding puts among the tags of an archived bookmark. */
const ARCHIVED_MARKS = new Set(['linkding:archived', 'linkding:bookmarks.archived']);

const splitTags = (text: string): string[] => text.split(',').map((tag) => tag.trim());

/** linkding's notes stand in the description, in marks; Pinboard's text may stand in a quotation. */
export function readDescription(text: string): string[] {
  const [description = '', notes = ''] = text.split('[linkding-notes]');
  const [note = ''] = notes.split('[/linkding-notes]');
  return [description.trim().replace(/^<blockquote>([\s\S]*)<\/blockquote>$/, '$1'), note];
}
