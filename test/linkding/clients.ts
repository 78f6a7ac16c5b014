import { z } from 'zod';

/**
 * What programs for linkding send, and what they can read of the responses. All of this was read in the sources of the
 * programs and written anew.
 */

/** One request of a client. */
interface ClientRequest {
  /** What the request is for, in the words of docs/linkding.md. */
  purpose: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `{id}` and `{tag}` stand for the id of a bookmark and of a tag. */
  path: string;
  headers?: Record<string, string>;
  /** A string is JSON text. */
  body?: string | FormData;
  status: number;
  /** The type to which the client decodes the response. Absent if the client does not read the body. */
  type?: z.ZodType;
}

export interface LinkdingClient {
  name: string;
  repository: string;
  commit: string;
  /** How the client presents the token. */
  scheme?: 'Token' | 'Bearer';
  /** Why some requests cannot succeed. Absent if all succeed. */
  limitation?: string;
  /** Whether the client appends its paths to the origin of the address that the user enters. */
  dropsPath?: boolean;
  requests: ClientRequest[];
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ACCEPT_JSON = { accept: 'application/json' };

const text = z.string();
const flag = z.boolean();
const names = z.array(text);
/** An integer of 64 bits, or a number of JavaScript. */
const wide = z.int();
/** An integer of 32 bits. */
const narrow = z.int32();
/** A text that may be null. Clients in Go also read null as an empty text. */
const maybe = text.nullable();
/** A time with six digits of a second. */
const micros = text.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
const time = z.iso.datetime();

const page = (entry: z.ZodType, count: z.ZodType = wide) =>
  z.object({ count, next: maybe, previous: maybe, results: z.array(entry) });

/** The fields that nearly all clients read. */
const common = { url: text, title: text, description: text, tag_names: names };
const flags = { is_archived: flag, unread: flag, shared: flag };
/** All fields, as linkding's documentation describes them. */
const whole = z.object({
  id: wide,
  ...common,
  ...flags,
  notes: text,
  web_archive_snapshot_url: text,
  favicon_url: maybe,
  preview_image_url: maybe,
  date_added: time,
  date_modified: time,
  website_title: maybe,
  website_description: maybe,
});
const tag = z.object({ id: wide, name: text, date_added: time });

const get = (purpose: string, path: string, type: z.ZodType, headers = {}): ClientRequest => ({
  purpose,
  method: 'GET',
  path,
  headers,
  status: 200,
  type,
});
const send = (
  purpose: string,
  method: 'POST' | 'PUT' | 'PATCH',
  path: string,
  body: object,
  type?: z.ZodType,
): ClientRequest => ({
  purpose,
  method,
  path,
  headers: JSON_TYPE,
  body: JSON.stringify(body),
  status: method === 'POST' ? 201 : 200,
  ...(type !== undefined && { type }),
});
/** A request without a body that is answered with 204. */
const act = (purpose: string, method: 'POST' | 'DELETE', path: string, headers = {}): ClientRequest => ({
  purpose,
  method,
  path,
  headers,
  status: 204,
});
const form = (fields: Record<string, string>): FormData => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  return data;
};

const SAVED = 'https://saved.example/';
const URL_PARAMETER = encodeURIComponent(SAVED);
const NEW = {
  url: 'https://new.example/',
  title: 'New',
  description: 'About it',
  notes: '',
  is_archived: false,
  unread: false,
  shared: false,
  tag_names: ['one', 'to-do'],
};
const EDITED = { ...NEW, url: SAVED, title: 'Edited' };
const PROFILE = z.object({
  theme: text,
  bookmark_date_display: text,
  bookmark_link_target: text,
  web_archive_integration: text,
  tag_search: text,
  enable_sharing: flag,
  enable_public_sharing: flag,
  enable_favicons: flag,
  display_url: flag,
  permanent_notes: flag,
  search_preferences: z.object({ sort: text, shared: text, unread: text }),
});
/** The fields that linka needs. All others may be absent. */
const LINKA_BOOKMARK = z.object({ id: wide, url: text, title: text, tag_names: names });
const LINKA_LIST = z.object({ results: z.array(LINKA_BOOKMARK) });
const BUNDLE = z.object({ id: wide, name: text, search: text });

export const CLIENTS: LinkdingClient[] = [
  {
    name: 'linkding-extension',
    repository: 'sissbruecker/linkding-extension',
    commit: '00f9e56',
    requests: [
      get('connect', '/api/bookmarks/?limit=1', page(whole)),
      get('check', `/api/bookmarks/check/?url=${URL_PARAMETER}`, checkOf(whole, maybe)),
      get('tags', '/api/tags/?limit=5000', page(tag)),
      get('profile', '/api/user/profile/', PROFILE),
      get('search', '/api/bookmarks/?q=saved&limit=5', page(whole)),
      get('get', '/api/bookmarks/{id}/', whole),
      send('save', 'POST', '/api/bookmarks/?disable_scraping&disable_html_snapshot', NEW, whole),
      act('delete', 'DELETE', '/api/bookmarks/{id}/', JSON_TYPE),
    ],
  },
  {
    name: 'linkding-injector',
    repository: 'Fivefold/linkding-injector',
    commit: '7502efd',
    requests: [
      get('connect', '/api/bookmarks/?limit=1', page(whole)),
      get('search', '/api/bookmarks/?q=saved%20example&limit=10', page(whole)),
    ],
  },
  {
    name: 'linkding-browser-extension',
    repository: 'damianmendis/linkding-browser-extension',
    commit: '4cb090e',
    requests: [
      get('connect', '/api/bookmarks/?limit=1', page(whole), JSON_TYPE),
      get('list', '/api/bookmarks/?limit=100', page(z.object({ id: wide, ...common, ...flags })), JSON_TYPE),
      get('tags', '/api/tags/?limit=100', page(tag), JSON_TYPE),
      send('save', 'POST', '/api/bookmarks/', { url: NEW.url, title: 'T', tag_names: ['one'] }, whole),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { title: 'T', tag_names: ['one'] }, whole),
      act('delete', 'DELETE', '/api/bookmarks/{id}/', JSON_TYPE),
    ],
  },
  {
    name: 'obsidian-linkding',
    repository: 'cloonix/obsidian-linkding',
    commit: '8907a96',
    requests: [
      get('connect', '/api/bookmarks/?limit=1', page(whole), JSON_TYPE),
      get(
        'search',
        `/api/bookmarks/?q=${encodeURIComponent('(#one OR #none) AND "saved.example" NOT other')}&limit=100`,
        page(whole),
        JSON_TYPE,
      ),
    ],
  },
  {
    name: 'linktiles',
    repository: 'haondt/linktiles',
    commit: '03cf004',
    requests: [
      get('profile', '/api/user/profile/', z.unknown()),
      get('list', '/api/bookmarks/?limit=100&q=%23one+%23to-do', page(z.object({ id: wide, ...common }))),
    ],
  },
  {
    name: 'aiolinkding',
    repository: 'bachya/aiolinkding',
    commit: '3f7f28c',
    limitation:
      'creating a tag also fails with linkding, because the program sends the name in another field',
    requests: [
      get('connect', '/health', z.object({ version: text })),
      get('list', '/api/bookmarks/?q=saved&limit=10&offset=0', z.object({})),
      get('archive', '/api/bookmarks/archived/', z.object({})),
      get('get', '/api/bookmarks/{id}/', z.object({})),
      send('save', 'POST', '/api/bookmarks/', NEW, z.object({})),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { title: 'T', unread: true }, z.object({})),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
      act('archive', 'POST', '/api/bookmarks/{id}/unarchive/'),
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
      get('tags', '/api/tags/?limit=10', z.object({})),
      get('tags', '/api/tags/{tag}/', z.object({})),
      send('create a tag', 'POST', '/api/tags/', { example: 'new' }, z.object({})),
      get('profile', '/api/user/profile/', z.object({})),
    ],
  },
  {
    name: 'linkding-cli',
    repository: 'bachya/linkding-cli',
    commit: '4addfad',
    limitation: 'it uses aiolinkding to create a tag',
    requests: [
      get('connect', '/health', z.object({ version: text })),
      get('list', '/api/bookmarks/?limit=100', z.object({})),
      send('save', 'POST', '/api/bookmarks/', { url: NEW.url, tag_names: ['one'] }, z.object({})),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { tag_names: ['one'] }, z.object({})),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
      send('create a tag', 'POST', '/api/tags/', { example: 'new' }, z.object({})),
      get('profile', '/api/user/profile/', z.object({})),
    ],
  },
  {
    name: 'Linkdy',
    repository: 'JGeek00/linkdy',
    commit: 'cd85f9c',
    requests: [
      get('connect', '/api/bookmarks/?limit=1', z.unknown()),
      get('list', '/api/bookmarks/?q=&limit=20&offset=0&unread=yes&sort=title_asc', page(whole)),
      get('archive', '/api/bookmarks/archived/?q=&limit=20&offset=0', page(whole)),
      get('list shared', '/api/bookmarks/shared/?q=&limit=20&offset=0', page(whole)),
      get('check', `/api/bookmarks/check?url=${URL_PARAMETER}`, checkOf(whole, maybe)),
      {
        purpose: 'save',
        method: 'POST',
        path: '/api/bookmarks/',
        body: form({ ...stringFields(NEW), tag_names: 'one,to-do' }),
        status: 201,
        type: whole,
      },
      {
        purpose: 'edit',
        method: 'PUT',
        path: '/api/bookmarks/{id}/',
        body: form(stringFields(EDITED)),
        status: 200,
        type: whole,
      },
      {
        purpose: 'edit',
        method: 'PATCH',
        path: '/api/bookmarks/{id}/',
        body: form({ unread: 'false' }),
        status: 200,
        type: whole,
      },
      act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
      act('archive', 'POST', '/api/bookmarks/{id}/unarchive/'),
      get('tags', '/api/tags/?limit=20&offset=0', page(tag)),
      {
        purpose: 'create a tag',
        method: 'POST',
        path: '/api/tags/',
        body: form({ name: 'new' }),
        status: 201,
        type: tag,
      },
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
    ],
  },
  {
    name: 'Pinkt',
    repository: 'fibelatti/pinboard-kotlin',
    commit: 'bce67f3',
    limitation: 'it reads ids as integers of 32 bits',
    requests: pinkt(),
  },
  {
    name: 'cosmicding',
    repository: 'vkhitrin/cosmicding',
    commit: '82f6418',
    requests: cosmicding(),
  },
  {
    name: 'LinkBuddy',
    repository: 'peterto/LinkBuddy',
    commit: '8c9d81f',
    requests: [
      get('connect', '/api/bookmarks/?limit=1', z.unknown(), JSON_TYPE),
      get('list', '/api/bookmarks/?limit=100&offset=0', page(whole), JSON_TYPE),
      get('list', '/api/bookmarks/?unread=yes&limit=100&offset=0', page(whole), JSON_TYPE),
      get('list', '/api/bookmarks/?shared=yes&limit=100&offset=0', page(whole), JSON_TYPE),
      get('archive', '/api/bookmarks/archived/?limit=100&offset=0&is_archived=true', page(whole), JSON_TYPE),
      get('check', `/api/bookmarks/check/?url=${URL_PARAMETER}`, checkOf(whole, maybe), JSON_TYPE),
      send('save', 'POST', '/api/bookmarks/', NEW, whole),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', EDITED, whole),
      send('archive', 'PATCH', '/api/bookmarks/{id}/', { is_archived: true }, whole),
      get('tags', '/api/tags/?limit=2000', page(tag), JSON_TYPE),
      get('tags', '/api/tags/?q=on&limit=5', page(tag), JSON_TYPE),
      send('create a tag', 'POST', '/api/tags/', { name: 'new' }, tag),
      get('profile', '/api/user/profile/', PROFILE, JSON_TYPE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/', JSON_TYPE),
    ],
  },
  {
    name: 'Linklater',
    repository: 'danielyrovas/linklater',
    commit: '689d3a9',
    limitation: 'it reads ids as integers of 32 bits',
    requests: [
      get(
        'list',
        '/api/bookmarks/?offset=0&q=saved',
        page(z.object({ id: narrow, url: text, title: maybe, date_added: maybe, tag_names: names })),
      ),
      send('save', 'POST', '/api/bookmarks/', NEW),
    ],
  },
  {
    name: 'go-linkding',
    repository: 'piero-vic/go-linkding',
    commit: 'cd5343c',
    requests: [
      get('list', '/api/bookmarks/?limit=10&offset=1&q=example&unread=yes', page(whole), JSON_TYPE),
      get('archive', '/api/bookmarks/archived/', page(whole), JSON_TYPE),
      get('get', '/api/bookmarks/{id}/', whole, JSON_TYPE),
      send('save', 'POST', '/api/bookmarks/', NEW, whole),
      send('edit', 'PUT', '/api/bookmarks/{id}/', EDITED, whole),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/', JSON_TYPE),
      act('archive', 'POST', '/api/bookmarks/{id}/unarchive/', JSON_TYPE),
      get('tags', '/api/tags?limit=10', page(tag), JSON_TYPE),
      get('tags', '/api/tags/{tag}/', tag, JSON_TYPE),
      send('create a tag', 'POST', '/api/tags/', { name: 'new' }, tag),
      get('profile', '/api/user/profile/', PROFILE, JSON_TYPE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/', JSON_TYPE),
    ],
  },
  {
    name: 'linkding-rs',
    repository: 'zbrox/linkding-rs',
    commit: '0d26280',
    dropsPath: true,
    limitation: 'it drops the path of the address, and reads ids as integers of 32 bits',
    requests: [
      get('list', '/api/bookmarks/?q=saved&limit=10', page(whole.extend({ id: narrow }), narrow)),
      get(
        'check',
        `/api/bookmarks/check/?url=${URL_PARAMETER}`,
        checkOf(whole.extend({ id: narrow }), maybe),
      ),
      send('save', 'POST', '/api/bookmarks/', NEW, whole.extend({ id: narrow })),
      get('tags', '/api/tags/', page(tag.extend({ id: narrow }), narrow)),
    ],
  },
  {
    name: 'linkdingsync',
    repository: 'spaytac/linkdingsync',
    commit: '9f4084e',
    dropsPath: true,
    limitation: 'it drops the path of the address, and reads ids as integers of 32 bits',
    requests: [
      get('list', '/api/bookmarks/', page(whole.extend({ id: narrow }), narrow)),
      send('save', 'POST', '/api/bookmarks/', NEW),
      send('edit', 'PUT', '/api/bookmarks/{id}/', EDITED),
    ],
  },
  {
    name: 'linkding-api',
    repository: 'vbsampath/linkding-api',
    commit: 'aa94d06',
    scheme: 'Bearer',
    limitation: 'the service has no bundles and assets',
    requests: [
      get('list', '/api/bookmarks/?limit=10', page(whole)),
      get('get', '/api/bookmarks/{id}/', whole),
      send('save', 'POST', '/api/bookmarks/', NEW, whole),
      send('edit', 'PUT', '/api/bookmarks/{id}/', EDITED, whole),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { title: 'T' }, whole),
      get('archive', '/api/bookmarks/archived/', page(whole)),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
      act('archive', 'POST', '/api/bookmarks/{id}/unarchive/'),
      get('check', `/api/bookmarks/check/?url=${URL_PARAMETER}`, checkOf(whole, maybe)),
      get('tags', '/api/tags/', page(tag)),
      get('tags', '/api/tags/{tag}/', tag),
      send('create a tag', 'POST', '/api/tags/', { name: 'new' }, tag),
      get('list bundles', '/api/bundles/', page(BUNDLE)),
      send('create a bundle', 'POST', '/api/bundles/', { name: 'b' }, BUNDLE),
      get('assets', '/api/bookmarks/{id}/assets/', page(z.object({ id: wide }))),
      get('profile', '/api/user/profile/', PROFILE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
    ],
  },
  {
    name: 'linkding for Raycast',
    repository: 'raycast/extensions',
    commit: '0ec0f7d',
    requests: [
      get(
        'search',
        '/api/bookmarks?q=saved',
        page(z.object({ id: wide, url: text, title: text, description: text })),
      ),
      send('save', 'POST', '/api/bookmarks/', NEW),
      act('delete', 'DELETE', '/api/bookmarks/{id}'),
    ],
  },
  {
    name: 'linkding-apps',
    repository: 'avatsav/linkding-apps',
    commit: '672b9af',
    dropsPath: true,
    limitation: 'it drops the path of the address',
    requests: [
      get('connect', '/api/bookmarks/?offset=0&limit=1', page(whole), JSON_TYPE),
      get('list', '/api/bookmarks/?offset=0&limit=20&q=saved%20%23one%20!unread', page(whole), JSON_TYPE),
      send('save', 'POST', '/api/bookmarks/', NEW, whole),
      get('tags', '/api/tags/?offset=0&limit=20&q=on', page(tag), JSON_TYPE),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/', JSON_TYPE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/', JSON_TYPE),
    ],
  },
  {
    name: 'linkding-media-archiver',
    repository: 'proog/linkding-media-archiver',
    commit: 'd0a04da',
    limitation: 'the service has no bundles and assets',
    requests: [
      get('connect', '/api/user/profile/', z.object({ version: text })),
      get('list', '/api/bookmarks/?q=%23one+or+%23none', page(z.object({ id: wide, ...common }))),
      get(
        'list changes',
        '/api/bookmarks/?modified_since=2026-01-02T03%3A04%3A05Z&q=%23one',
        page(z.object({ id: wide, ...common })),
      ),
      get('list a bundle', '/api/bookmarks/?bundle=1', page(z.object({ id: wide }))),
      get('assets', '/api/bookmarks/{id}/assets/', page(z.object({ id: wide }))),
    ],
  },
  {
    name: 'clinkding',
    repository: 'daveonkels/clinkding',
    commit: '4cb9d9b',
    limitation: 'the service has no bundles and assets',
    requests: [
      get(
        'list',
        '/api/bookmarks/?limit=100&offset=1&q=example&added_since=2020-01-01T00%3A00%3A00Z',
        page(whole),
      ),
      get('list changes', '/api/bookmarks/?modified_since=2020-01-01T00%3A00%3A00Z', page(whole)),
      get('get', '/api/bookmarks/{id}/', whole),
      get('check', `/api/bookmarks/check/?url=${URL_PARAMETER}`, checkOf(whole, maybe)),
      send('save', 'POST', '/api/bookmarks/', { url: NEW.url, title: 'T', unread: true }, whole),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { shared: true }, whole),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
      act('archive', 'POST', '/api/bookmarks/{id}/unarchive/'),
      get('tags', '/api/tags/?limit=100', page(tag)),
      send('create a tag', 'POST', '/api/tags/', { name: 'new' }, tag),
      get('list bundles', '/api/bundles/', page(BUNDLE)),
      send('create a bundle', 'POST', '/api/bundles/', { name: 'b' }, BUNDLE),
      get('assets', '/api/bookmarks/{id}/assets/', page(z.object({ id: wide }))),
      get('profile', '/api/user/profile/', PROFILE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
    ],
  },
  {
    name: 'linkdingctl',
    repository: 'rodmhgl/linkdingctl',
    commit: '2efb963',
    limitation: 'the service has no bundles',
    requests: [
      get('connect', '/api/bookmarks/', page(whole)),
      get('list', '/api/bookmarks/?limit=100&q=saved+one&unread=yes', page(whole)),
      get('get', '/api/bookmarks/{id}/', whole),
      send('save', 'POST', '/api/bookmarks/', { url: NEW.url, tag_names: ['one'] }, whole),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { tag_names: ['one', 'to-do'] }, whole),
      get('tags', '/api/tags/?limit=100', page(tag)),
      get('tags', '/api/tags/{tag}/', tag),
      send('create a tag', 'POST', '/api/tags/', { name: 'new' }, tag),
      get('list bundles', '/api/bundles/?limit=100', page(BUNDLE)),
      send('create a bundle', 'POST', '/api/bundles/', { name: 'b' }, BUNDLE),
      get('profile', '/api/user/profile/', PROFILE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
    ],
  },
  {
    name: 'linkding-client',
    repository: 'huffmanks/linkding-client',
    commit: 'fa11d04',
    limitation: 'the service has no bundles and assets',
    requests: [
      get('list', '/api/bookmarks/?limit=100&offset=0', page(whole), JSON_TYPE),
      get('archive', '/api/bookmarks/archived/', page(whole), JSON_TYPE),
      get('get', '/api/bookmarks/{id}/', whole, JSON_TYPE),
      get(
        'check',
        `/api/bookmarks/check/?url=${URL_PARAMETER}`,
        z.object({ bookmark: whole.nullable() }),
        JSON_TYPE,
      ),
      get('list bundles', '/api/bundles/', page(BUNDLE), JSON_TYPE),
      get('tags', '/api/tags/', page(tag), JSON_TYPE),
      send('save', 'POST', '/api/bookmarks/', NEW, whole),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { unread: true }, whole),
      send('create a tag', 'POST', '/api/tags/', { name: 'new' }, tag),
      act('delete a tag', 'DELETE', '/api/tags/{tag}/', JSON_TYPE),
      send('create a bundle', 'POST', '/api/bundles/', { name: 'b' }, BUNDLE),
      get('assets', '/api/bookmarks/{id}/assets/', page(z.object({ id: wide })), JSON_TYPE),
      act('delete', 'DELETE', '/api/bookmarks/{id}/', JSON_TYPE),
    ],
  },
  {
    name: 'linka',
    repository: 'cmsax/linka',
    commit: '8688e32',
    requests: [
      get('connect', '/api/bookmarks', z.unknown()),
      get('list', '/api/bookmarks/?limit=10000', LINKA_LIST),
      get('archive', '/api/bookmarks/archived/?limit=10000', LINKA_LIST),
      get('list shared', '/api/bookmarks/shared/?limit=10000', LINKA_LIST),
      get('search', '/api/bookmarks/?q=saved&limit=10000', LINKA_LIST),
      get('get', '/api/bookmarks/{id}/', LINKA_BOOKMARK),
      get('tags', '/api/tags/?limit=10000', z.object({ results: z.array(tag) })),
      send('save', 'POST', '/api/bookmarks/', { ...NEW, website_title: '', website_description: '' }),
      send('edit', 'PUT', '/api/bookmarks/{id}/', linkaForm('Edited')),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { shared: true }),
      act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
      act('delete', 'DELETE', '/api/bookmarks/{id}/'),
    ],
  },
  {
    name: 'linkding for Safari',
    repository: 'phmagic/linkding-safari',
    commit: '1c31118',
    requests: [
      get('connect', '/api/user/profile/', PROFILE, ACCEPT_JSON),
      get('check', `/api/bookmarks/check/?url=${URL_PARAMETER}`, checkOf(whole, maybe), ACCEPT_JSON),
      get(
        'search',
        '/api/bookmarks/?q=saved%20example&limit=10',
        z.object({ results: z.array(z.object({ url: text, title: maybe })) }),
        ACCEPT_JSON,
      ),
      {
        ...send('save', 'POST', '/api/bookmarks/', { ...NEW, description: undefined }, whole),
        headers: { ...JSON_TYPE, ...ACCEPT_JSON },
      },
    ],
  },
  {
    name: 'linkding-healthcheck',
    repository: 'sebw/linkding-healthcheck',
    commit: '587c408',
    requests: [
      get('list', '/api/bookmarks/?limit=100', page(z.object({ id: wide, ...common, date_added: time }))),
      send('edit', 'PATCH', '/api/bookmarks/{id}/', { tag_names: ['one', '@HEALTH_404'] }),
    ],
  },
];

/** What linka's form sends: the bookmark as linkding returned it, with the fields that the user changed. */
function linkaForm(title: string): object {
  const { notes: _notes, ...fields } = EDITED;
  const dates = { date_added: '2026-01-02T03:04:05.678901Z', date_modified: '2026-01-02T03:04:05.678901Z' };
  return { ...fields, title, id: 1, website_title: '', website_description: '', ...dates };
}

/** The response to a check. Some clients cannot read null in the metadata. */
function checkOf(bookmark: z.ZodType, metadata: z.ZodType) {
  return z.object({
    bookmark: bookmark.nullable(),
    metadata: z.object({ url: text, title: metadata, description: metadata }),
  });
}

function stringFields({ tag_names: _names, ...fields }: typeof NEW): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));
}

function pinkt(): ClientRequest[] {
  const bookmark = z.object({
    id: narrow.nullable(),
    url: text,
    title: maybe,
    description: maybe,
    notes: maybe,
    date_added: micros,
    date_modified: micros,
    is_archived: flag,
    unread: flag,
    shared: flag,
    tag_names: names,
  });
  const added = '2026-01-02T03:04:05.678901Z';
  return [
    get('list', '/api/bookmarks/?offset=0&limit=10000', page(bookmark, narrow)),
    get('archive', '/api/bookmarks/archived/?offset=0&limit=10000', page(bookmark, narrow)),
    get('get', '/api/bookmarks/{id}/', bookmark),
    send('save', 'POST', '/api/bookmarks/', { ...NEW, date_added: added, date_modified: added }, bookmark),
    send('edit', 'PUT', '/api/bookmarks/{id}/', { ...EDITED, id: 1, date_added: added }, bookmark),
    act('archive', 'POST', '/api/bookmarks/{id}/archive/'),
    get(
      'tags',
      '/api/tags/?offset=0&limit=10000',
      page(z.object({ id: narrow, name: text, date_added: text }), narrow),
    ),
    act('delete', 'DELETE', '/api/bookmarks/{id}/'),
  ];
}

function cosmicding(): ClientRequest[] {
  const bookmark = whole.extend({ date_added: text, date_modified: text });
  return [
    get('list', '/api/bookmarks/', page(bookmark)),
    get('archive', '/api/bookmarks/archived/', page(bookmark)),
    get('list shared', '/api/bookmarks/shared/', page(bookmark)),
    get('check', `/api/bookmarks/check/?url=${URL_PARAMETER}&disable_scraping=true`, checkOf(bookmark, text)),
    send('save', 'POST', '/api/bookmarks/?disable_scraping', NEW, bookmark),
    send('edit', 'PATCH', '/api/bookmarks/{id}/', { ...EDITED, title: '', favicon_cached: null }, bookmark),
    get('profile', '/api/user/profile/', PROFILE),
    act('delete', 'DELETE', '/api/bookmarks/{id}/'),
  ];
}
