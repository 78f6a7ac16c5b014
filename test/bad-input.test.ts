import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { parseToken } from '../src/domain/tokens.ts';
import { parseBody } from '../src/domain/validation.ts';
import { findRefusals } from '../src/formats/check-entries.ts';
import { DEFAULT_BODY_BYTES, type PrincipalRoute } from '../src/http/route.ts';
import { ROUTES } from '../src/routes/app.ts';
import { issueDeviceCode } from '../src/sign-in/device-codes.ts';
import { newGrant } from './support/app-grant.ts';
import { startService, type TestUser, useService, useUser } from './support/service.ts';
import { newEmail } from './support/users.ts';

// Every field of every route accepts the values at its limits, and refuses invalid values with a message. The limits come
// from the schemas of the routes, and one test compares them with those of the contract. Most invalid values are tried
// without a service.

const MAX_ID = Number.MAX_SAFE_INTEGER;
const FACE = '😀';

const service = useService({ syncWaitSeconds: 0.02 });
const user = useUser(service, { premium: true });

beforeAll(async () => {
  // The lowest ids belong to another user.
  const first = await service.user();
  for (const tag of ['a', 'b', 'c']) await first.post('/bookmarks/add', { url: 'http://a', tags: [tag] });
});

interface Case {
  value: unknown;
  /**
   * The expected text after `field: ` in the message. If the fault is inside the field, the text begins with the
   * position of the fault, such as `[1]`.
   */
  rule: string;
}

/** A field: the values that it accepts, and the values that it refuses, each with the reason. */
interface Field {
  good: unknown[];
  bad: Case[];
  /** Set if the route itself refuses some of the values, which its schema accepts. */
  isCheckedByRoute?: true;
}

/** Returns the texts that `|` separates. */
const list = (...lines: string[]): string[] => lines.join('|').split('|');

const cases = (rule: string, ...values: unknown[]): Case[] => values.map((value) => ({ value, rule }));

const UNSTORABLE = 'may not contain U+0000 or a lone surrogate';
const UNSTORABLE_TEXTS = ['\u0000', 'a\u0000b', '\ud800', 'a\udc00', '\udc00\ud800', `${FACE}\ud83d`];
const NO_STRINGS: unknown[] = [true, false, 0, 1.5, 1e300, [], ['a'], {}, { toString: 'a' }];

/** Letters of many scripts. The service must return them as they were sent. */
const FOREIGN = [
  FACE,
  'עברית \u200f',
  '\u202eabc\u202c',
  'e\u0301',
  'ﷺ',
  '\u{10ffff}',
  '\ufffe',
  '\u0001\u007f',
  "'; --",
];

function text(max: number, min = 0): Field {
  return {
    good: [
      'a'.repeat(max),
      FACE.repeat(max),
      `\t ${'é'.repeat(max)}\u3000\ufeff`,
      ...(min === 0 ? ['', ' '] : []),
      ...FOREIGN,
    ],
    bad: [
      ...cases('expected a string', ...NO_STRINGS),
      ...cases(UNSTORABLE, ...UNSTORABLE_TEXTS),
      ...cases(
        `at most ${max} characters`,
        'a'.repeat(max + 1),
        FACE.repeat(max + 1),
        'a'.repeat(2 * max + 2),
      ),
      ...(min > 0 ? cases('may not be empty', '', ' ', '\u3000\n\ufeff') : []),
    ],
  };
}

const tagName: Field = (() => {
  const { good, bad } = text(255, 1);
  // The limit applies to the stored text, which is in NFC.
  return { good: [...good, 'a\u0301'.repeat(255)], bad };
})();

const url: Field = {
  good: [
    'http://a',
    ' https://example.org/ \n',
    'HTTPS://EXAMPLE.ORG:443',
    'http://[::1]:1/',
    'http://1/',
    'http://bücher.example/é?ü#ö',
    'http://user:pass@example.org',
    'https://example.org/\u202e%%%"\'<>\\^`{|}',
    `http://${'a.'.repeat(126)}a:80/`,
    `http://a/${'a'.repeat(8_192 - 9)}`,
    `http://a/${FACE.repeat(8_192 - 9)}`,
  ],
  bad: [
    ...cases('expected a string', ...NO_STRINGS),
    ...cases(UNSTORABLE, ...UNSTORABLE_TEXTS, 'http://a/\u0000', 'http://a/\ud800'),
    ...cases('may not be empty', '', ' ', '\u00a0\t'),
    ...cases(
      'at most 8192 characters',
      `http://a/${'a'.repeat(8_193 - 9)}`,
      `http://a/${FACE.repeat(8_193 - 9)}`,
    ),
    ...cases(
      'host: at most 253 characters',
      `http://${'a.'.repeat(127)}/`,
      `http://a${'\u0301'.repeat(4_000)}${'\u0323'.repeat(4_000)}/`,
      `http://user@b@${'%CC%81'.repeat(43)}`,
    ),
    ...cases(
      'may not contain control characters',
      'http://a/\n/b',
      'ht\ttp://a',
      'http://a/\u0001',
      'http://a/\u007f\u0085/',
      'http://a/\u0085x',
      'java\nscript:alert(1)',
    ),
    ...cases(
      'expected an absolute url',
      ...list(
        'a|/a|//a|?a|a.example|http://|http:// a|http://a:99999|http://[::1|:a|//example.org/',
        '#|http:// /|http://exa mple.org/|http://999.999.999.999/|http://a%00b/',
      ),
    ),
    ...cases(
      'expected an http or https url',
      ...list(
        'javascript:alert(1)|JAVASCRIPT://a/%0aalert(1)|data:text/html,a|file:///etc/passwd',
        'ftp://a/|mailto:a@b.example|ws://a/|about:blank|view-source:http://a/',
        'blob:http://a/b',
      ),
    ),
  ],
};

/** The tags of a bookmark: at most 100 different names. */
const tags: Field = {
  good: [
    [],
    ['a', 'A', ' a '],
    Array.from({ length: 100 }, (_, n) => `tag ${n}`),
    Array.from({ length: 300 }, (_, n) => `tag ${n % 100}`),
    ...tagName.good.map((name) => [name]),
  ],
  bad: [
    ...cases('expected an array', true, 0, 'a', '', {}, { length: 0 }, { 0: 'a' }),
    ...cases(
      'at most 100 tags',
      Array.from({ length: 101 }, (_, n) => `tag ${n}`),
    ),
    ...tagName.bad.map(({ value, rule }) => ({ value: ['ok', value], rule: `[1]: ${rule}` })),
    { value: ['ok', null], rule: '[1]: expected a string' },
  ],
};

const NO_NUMBERS: unknown[] = [true, '', '1', 'a', [], [1], {}];
const NO_INTEGERS = [0.5, 1.5, -1.5, 1e300, -1e300, 2 ** 53, 2 ** 64, 1e21];

/** Makes a field for integers from `min` to `max`. */
const integer = (min: number, max: number): Field => ({
  good: [min, min + 1, max],
  bad: cases(
    `expected an integer from ${min} to ${max}`,
    ...NO_NUMBERS,
    ...NO_INTEGERS,
    min - 1,
    -1,
    -(2 ** 53),
    ...(max < MAX_ID ? [max + 1, MAX_ID] : []),
  ),
});

const phrases: Field = {
  good: [
    [],
    ['to be', 'to be'],
    Array.from({ length: 10 }, () => 'a b'),
    ...text(1_000, 1).good.map((one) => [one]),
  ],
  bad: [
    ...cases('expected an array', true, 0, 'a', '', {}),
    ...cases(
      'at most 10 phrases',
      Array.from({ length: 11 }, () => 'a'),
    ),
    ...text(1_000, 1).bad.map(({ value, rule }) => ({ value: ['ok', value], rule: `[1]: ${rule}` })),
    { value: ['ok', null], rule: '[1]: expected a string' },
  ],
};

const alternatives: Field = {
  good: [
    [],
    Array.from({ length: 10 }, () => ({ phrases: ['a'], unknown: 1 })),
    [
      { phrases: null, tags: ['a'] },
      { phrases: [], tags: ['b'] },
    ],
    ...phrases.good.slice(1).map((given) => [{ phrases: given }]),
    ...tags.good.slice(1).map((given) => [{ tags: given }]),
  ],
  bad: [
    ...cases('expected an array', true, 0, 'a', '', {}),
    ...cases('at most 10 alternatives', Array(11).fill({ phrases: ['a'] })),
    ...[null, 'a', 0, []].map((value) => ({ value: [value], rule: '[0]: expected an object' })),
    ...[{}, { phrases: [] }, { tags: [] }, { phrases: null }, { phrase: ['a'] }].map((value) => ({
      value: [{ phrases: ['a'] }, value],
      rule: '[1]: expected phrases or tags',
    })),
    ...phrases.bad.map(({ value, rule }) => ({
      value: [{ phrases: value }],
      rule: `[0].phrases${rule.startsWith('[') ? '' : ': '}${rule}`,
    })),
    { value: [{ tags: ['a', ' '] }], rule: '[0].tags[1]: may not be empty' },
    { value: [{ tags: 'a' }], rule: '[0].tags: expected an array' },
  ],
};

const site: Field = {
  good: ['example.org', 'EXAMPLE.org.', ' a ', '[::1]', '1.1', 'bücher.example', 'a'.repeat(253)],
  bad: [
    ...cases('expected a string', ...NO_STRINGS),
    ...cases(UNSTORABLE, ...UNSTORABLE_TEXTS),
    ...cases('may not be empty', '', ' '),
    ...cases('at most 253 characters', 'a'.repeat(254)),
    ...cases('expected a host name', ...list('http://a|a/|a:80|a@b|a b|::1|[::1]:1|a#|a?|a\\b|%')),
  ],
};

const ids: Field = {
  good: [[1], [MAX_ID, 1, 1], Array.from({ length: 500 }, (_, n) => n + 1)],
  bad: [
    ...cases('expected an array', true, 0, 'a', '', {}, { length: 1 }),
    ...cases('may not be empty', []),
    ...cases('at most 500 ids', Array(501).fill(1)),
    ...[null, ...NO_NUMBERS, ...NO_INTEGERS, 0, -1].map((value) => ({
      value: [1, value],
      rule: `[1]: expected an integer from 1 to ${MAX_ID}`,
    })),
  ],
};

const tagPaths: Field = {
  good: ['a/', '/a', [], ['a', 'B/'], ...tagName.good],
  bad: [
    ...cases('expected a string or an array', true, 0, {}, { length: 0 }),
    ...cases('may not be empty', '', '/', ' // '),
    ...cases('at most 255 characters', 'x'.repeat(256)),
    ...cases('at most 10 tags', Array(11).fill('a')),
    ...cases('[1]: expected a string', ['a', null], ['a', ['b']]),
    ...cases('[1]: may not be empty', ['a', '/']),
  ],
};

/** Makes a field for a code from an app. `good` is empty, because a code is valid for only one request. */
const appCode = (rule: string, ...values: string[]): Field => ({
  good: [],
  bad: [...cases('expected a string', ...NO_STRINGS), ...cases(rule, ...values)],
});

/** The email address of an invite. `good` is empty, because the codes in these requests belong to no invite. */
const invitedEmail: Field = {
  good: [],
  bad: [
    ...cases('expected a string', ...NO_STRINGS),
    ...cases('at most 254 characters', 'a'.repeat(255), '😀'.repeat(255)),
    ...cases('may not be empty', '', ' '),
    ...cases('may not contain U+0000 or a lone surrogate', 'a\0', '\ud800'),
  ],
};

const codeOf = (length: number): Field => {
  const whole = 'ABCDEFGHIJKL'.slice(0, length);
  const cut = whole.slice(1);
  return {
    good: [],
    bad: [
      ...cases('expected a string', ...NO_STRINGS),
      ...cases(
        `expected ${length} characters, A to Z and 0 to 9`,
        '',
        cut,
        `${whole}X`,
        'A'.repeat(20 - length),
        whole.toLowerCase(),
        ` ${whole}`,
        `${cut}\n`,
        `${whole}\n`,
        `É${cut}`,
        `${cut}１`,
        `${cut.slice(1)} G`,
        `${cut}-`,
        `${cut}\u0000`,
        FACE.repeat(length / 2),
        '٠'.repeat(length),
      ),
    ],
  };
};

const encode = (plain: string) => Buffer.from(plain).toString('base64url');

const listCursor: Field = {
  isCheckedByRoute: true,
  good: [''],
  bad: [
    ...cases('expected a string', ...NO_STRINGS),
    ...cases(
      'is malformed',
      ' ',
      'a',
      '0',
      '====',
      '\u0000',
      '\ud800',
      FACE,
      ...list(
        '1|1::|1:1|1:1:|1:1:a|1:1:-1|1:1:1.5|1:1:01|1:01:1|1: 1:1|1:1:1 |1:1:1:1|2:1:1|1:1:9007199254740992',
        '1:1:9999999999999999|1:1:99999999999999999999',
      ).map(encode),
      encode("1:1:1' or 1=1"),
      `${encode('1:1:1')}=`,
      ` ${encode('1:1:1')}`,
      `${encode('1:1:1')}\u0000`,
      'a'.repeat(200),
      'a'.repeat(201),
      'a'.repeat(60_000),
    ),
  ],
};

/**
 * A cursor of changes: its kind, which is 2, and six more numbers. `1:1:1` is a valid cursor of the list, but it is
 * malformed here.
 */
const changesCursor: Field = {
  isCheckedByRoute: true,
  good: [''],
  bad: [
    ...listCursor.bad,
    ...cases('is malformed', ...['1:1:1', '2:1:1:1:1:1', '2:1:1:1:1:1:1:1', '2:1:1:1:1:1:01'].map(encode)),
  ],
};

/** A cursor of the trash: its kind, which is 4, and three more numbers. */
const trashCursor: Field = {
  isCheckedByRoute: true,
  good: [''],
  bad: [...listCursor.bad, ...cases('is malformed', ...['4:1:1', '4:1:1:1:1', '4:1:01:1'].map(encode))],
};

const NO_TIME = 'expected an ISO 8601 time of the years 0001 to 9999';
const time: Field = {
  good: [
    '2026-01-31T12:00:00Z',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999999+00:00',
    '2024-02-29t00:00:00z',
    '2026-01-31',
    '2026-01-31T12:00',
    '2026-01-31 12:00:00',
    '2026-01-31 12:00:00.123456789+0200',
    '2026-01-31 12:00:00 -02',
  ],
  bad: [
    ...cases('expected a string', ...NO_STRINGS),
    ...cases(
      NO_TIME,
      ...list(
        '|now|infinity|-infinity|epoch|today|2026|2026-01|20260131|2026-01-31Z',
        '2026-01-31+02:00|2026-01-31T|2026-01-31T12|2026-01-31T12Z|2026-01-31  12:00:00',
        '2026-01-31T12:00:00 Z|2026-01-31T12:00:00  +0200|2026-01-31T12:00:00+02:0',
        '2026-01-31T12:00:00+020|2026-01-31T12:00:00+|2026-01-31T12:00:00 UTC',
        '2026-01-31T12:00.5Z|2026-1-31|2026-13-01T00:00:00Z|2026-02-29T00:00:00Z',
        '2026-01-00T00:00:00Z|2026-01-31T24:00:00Z|2026-01-31T12:60:00Z|2026-01-31T12:00:61Z',
        '2026-01-31T12:00:00+24:00|2026-01-31T12:00:00.Z|0000-12-31T23:59:59Z',
        '0001-01-01T00:00:00+00:01|9999-12-31T23:59:59-00:01|10000-01-01T00:00:00Z',
        '-2026-01-31T12:00:00Z|+002026-01-31T12:00:00Z| 2026-01-31T12:00:00Z',
        '2026-01-31T12:00:00Z\u0000|２026-01-31T12:00:00Z',
      ),
      `2026-01-31T12:00:00.${'9'.repeat(100_000)}x`,
    ),
  ],
};

/** The version of a bookmark. Each bookmark accepts only its own version, so no value is valid for all bookmarks. */
const version: Field = {
  good: [],
  bad: [
    ...time.bad.filter(({ value }) => JSON.stringify(value).length < DEFAULT_BODY_BYTES / 2),
    // The write would otherwise become unconditional.
    { value: null, rule: 'expected a string' },
  ],
};

const items: Field = {
  good: [Array.from({ length: 500 }, (_, n) => ({ id: n + 1, if_updated_at: '2026-01-31T12:00:00Z' }))],
  bad: [
    ...cases('expected an array', true, 0, 'a', '', {}, { length: 1 }),
    ...cases('may not be empty', []),
    ...cases('at most 500 items', Array(501).fill(null)),
    { value: [null], rule: '[0]: expected an object' },
    { value: [{ if_updated_at: '2026-01-31T12:00:00Z' }], rule: '[0].id: is required' },
    { value: [{ id: 1 }], rule: '[0].if_updated_at: is required' },
    { value: [{ id: 1, if_updated_at: null }], rule: '[0].if_updated_at: expected a string' },
    { value: [{ id: 1, if_updated_at: 'now' }], rule: `[0].if_updated_at: ${NO_TIME}` },
  ],
};

/** The account's own address. No other address is accepted. `good` is empty, because this address deletes the user. */
const confirm: Field = {
  isCheckedByRoute: true,
  good: [],
  bad: [
    ...text(254, 1).bad,
    ...cases('is not the e-mail address of this account', 'a@b.example', 'a', '\u0001', FACE),
  ],
};

const days: Field = {
  good: [1, 365, null],
  bad: cases(
    'expected an integer from 1 to 365, or null',
    ...[0, -1, 366, 1.5, 1e300, '90', '', true, [], {}, MAX_ID, -MAX_ID],
  ),
};

const bookmarks: Field = {
  isCheckedByRoute: true,
  good: [[]],
  bad: [
    ...cases('expected an array', true, 0, 'a', {}, { length: 1 }),
    ...cases(
      'at most 100000 entries',
      Array.from({ length: 100_001 }, () => 0),
    ),
  ],
};

/** The operations of a batch. A malformed operation is refused in its place, so the request succeeds. */
const operations: Field = {
  good: [[null], [{}], Array(500).fill({ do: 'edit', id: 1 })],
  bad: [
    ...cases('expected an array', true, 0, 'a', {}, { length: 1 }),
    ...cases('may not be empty', []),
    ...cases('at most 500 operations', Array(501).fill({})),
  ],
};

/** Makes a field that accepts only these values. `rule` names them. */
const choice = (rule: string, ...values: unknown[]): Field => ({
  good: values,
  bad: cases(rule, 0, '', 'other', `${values[0]}`.toUpperCase(), ` ${values[0]}`, [], [values[0]], {}),
});

/** The fields with a format that a schema does not describe. By name, or by the path of a route and the name. */
const FORMATS: Record<string, Field> = {
  url,
  tags,
  without_tags: tags,
  add_tags: tags,
  remove_tags: tags,
  tag_under: tagPaths,
  phrases,
  without_phrases: phrases,
  any: alternatives,
  site,
  operations,
  ids,
  items,
  if_updated_at: version,
  created_at: time,
  created_after: time,
  created_before: time,
  updated_after: time,
  // A bookmark with the url exists already, so no test can send "error" and get 200.
  on_duplicate: choice('expected "add" or "return" or "error"', 'add', 'return'),
  email: invitedEmail,
  confirm,
  expires_in_days: days,
  bookmarks,
  '/tags/create name': tagName,
  '/tags/update name': tagName,
  '/tags/update path': tagName,
  '/tags/delete path': tagName,
  '/bookmarks/list cursor': listCursor,
  '/bookmarks/search cursor': listCursor,
  '/bookmarks/changes cursor': changesCursor,
  '/trash/list cursor': trashCursor,
  '/auth/invite code': codeOf(8),
  '/auth/device code': codeOf(12),
  '/auth/exchange code': appCode(
    'expected a code of 43 characters',
    'x'.repeat(42),
    'x'.repeat(44),
    `${'x'.repeat(42)}.`,
  ),
  '/auth/exchange code_verifier': appCode(
    'expected 43 to 128 characters: letters, digits, - . _ ~',
    'v'.repeat(42),
    'v'.repeat(129),
    `${'v'.repeat(42)}+`,
  ),
  '/auth/exchange redirect_uri': appCode('at most 500 characters', 'x'.repeat(501)),
};

type Json = z.core.JSONSchema.JSONSchema;

/** Derives a field from its schema, unless the field has a format of its own. */
function fieldOf(path: string, name: string, schema: Json): Field {
  const own = FORMATS[`${path} ${name}`] ?? FORMATS[name];
  if (own) return own;
  if (schema.const === true) return choice('expected true', true);
  const values = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (values) return choice(`expected ${values.map((value) => `"${value}"`).join(' or ')}`, ...values);
  if (schema.type === 'boolean')
    return { good: [true, false], bad: cases('expected true or false', 0, 1, 'true', '', [], {}) };
  if (schema.type === 'integer') return integer(schema.minimum!, schema.maximum!);
  return text(schema.maxLength!, schema.minLength);
}

/** The schemas of a route's fields, and the names of its required fields. */
function readSchema({ body }: { body: z.ZodType }): { properties: [string, Json][]; required: string[] } {
  const { properties = {}, required = [] } = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' });
  return { properties: Object.entries(properties as Record<string, Json>), required };
}

test('the limits are those of the contract (section 2.5)', () => {
  const limits = ROUTES.flatMap((route) =>
    readSchema(route).properties.map(([name, schema]) => {
      const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
      return `${name} ${minimum ?? minLength ?? minItems ?? ''}-${maximum ?? maxLength ?? maxItems ?? ''}`;
    }),
  );
  expect([...new Set(limits)].filter((each) => !each.endsWith(' -')).sort()).toEqual(
    list(
      'add_tags -100|after_id 0-9007199254740991|any -10|bookmarks -100000|comment -10000|confirm 1-254|cursor -200',
      'cursor -2000|cursor 0-9007199254740991|email 1-254|id 1-9007199254740991|ids 1-500',
      'into_id 1-9007199254740991|items 1-500|limit 1-100|limit 1-500|name 1-255|operations 1-500',
      'page 1-9007199254740991|parts 1-64|path 1-255|per_page 1-100|phrases -10|query -1000|redirect_uri -500',
      'remove_tags -100|site 1-253|tag -255|tags -100|title -2048|up_to_id 0-9007199254740991|url 1-8192|wait_seconds 0-30',
      'without_phrases -10|without_tags -100',
    ),
  );
});

const newBookmark = async (user: TestUser) =>
  (await user.post('/bookmarks/add', { url: 'http://a' })).body.id;
/**
 * Returns the id of a new token. Revokes earlier tokens first, because these tests would otherwise reach the limit of
 * tokens.
 */
const newToken = async (user: TestUser) => {
  for (const { id } of (await user.post('/tokens/list')).body.tokens)
    await user.post('/tokens/revoke', { id });
  return (await user.post('/tokens/create', { name: `token made ${Math.random()}` })).body.id;
};
const newSession = async (user: TestUser) => {
  const { token } = await service.session(user.email);
  const { body } = await service.post('/sessions/list', {}, { token });
  return body.sessions.find((each: { is_current: boolean }) => each.is_current).id;
};
const newTag = async (user: TestUser) =>
  (await user.post('/tags/create', { name: `tag made ${Math.random()}` })).body.id;

interface RouteCases {
  /** Returns a complete valid body. Each request of the user gets a new body. */
  body(user: TestUser): Promise<Record<string, unknown>> | Record<string, unknown>;
  /** For the fields that do not fit into the body from `body`: the body to which a test adds the field instead. */
  instead?: Record<string, object>;
  /** Set if the route accepts ids that do not exist. */
  takesAnyId?: true;
}

/** The routes that need more than an empty body. */
const ROUTE_CASES: Record<string, RouteCases> = {
  '/auth/invite': { body: () => ({ code: 'AAAAAAAA' }) },
  '/auth/device': { body: () => ({ code: 'AAAABBBBCCCC' }) },
  '/auth/exchange': {
    body: () => ({
      code: 'x'.repeat(43),
      code_verifier: 'v'.repeat(43),
      redirect_uri: 'http://127.0.0.1:8123/signed-in',
    }),
  },
  '/bookmarks/add': { body: () => ({ url: 'http://a' }) },
  '/bookmarks/edit': {
    body: async (user) => ({ id: await newBookmark(user) }),
    instead: { ids: {}, items: {}, add_tags: { ids: [1] }, remove_tags: { ids: [1] } },
  },
  '/bookmarks/delete': {
    body: async (user) => ({ id: await newBookmark(user) }),
    instead: { ids: {}, items: {} },
  },
  '/bookmarks/batch': { body: () => ({ operations: [{ do: 'add', url: 'http://a' }] }) },
  '/bookmarks/get': {
    body: async (user) => ({ id: await newBookmark(user) }),
    instead: { url: {} },
    takesAnyId: true,
  },
  '/trash/restore': { body: () => ({ ids: [1] }) },
  '/trash/delete': { body: () => ({ ids: [1] }), instead: { all: {} } },
  '/tags/create': { body: () => ({ name: `tag made ${Math.random()}` }) },
  '/tags/update': {
    body: async (user) => ({ id: await newTag(user), name: `tag made ${Math.random()}` }),
    instead: { path: { name: 'new', with_children: true } },
  },
  '/tags/delete': {
    body: async (user) => ({ id: await newTag(user) }),
    instead: { path: { with_children: true } },
  },
  '/tags/merge': { body: async (user) => ({ id: await newTag(user), into_id: await newTag(user) }) },
  '/account/delete': { body: () => ({ confirm: 'a@b.example' }) },
  '/tokens/create': { body: async (user) => ({ name: `token beside ${await newToken(user)}` }) },
  '/tokens/revoke': { body: async (user) => ({ id: await newToken(user) }) },
  '/sessions/revoke': { body: async (user) => ({ id: await newSession(user) }) },
  '/import': { body: () => ({ bookmarks: [] }) },
};

/** Makes requests that work only once, or that revoke their own token. Each request needs a new body or a new user. */
const SPENT: Record<string, () => Promise<{ by: TestUser; body: object }>> = {
  '/logout': async () => ({ by: await service.session(), body: {} }),
  '/auth/invite': async () => ({ by: user, body: { code: await service.invite(newEmail()) } }),
  '/auth/device': async () => {
    const by = await service.session();
    const { hash } = parseToken(by.token)!;
    const code = await issueDeviceCode(service.context.coordination.pending, { userId: by.id, hash });
    return { by, body: { code } };
  },
  '/auth/exchange': async () => {
    const by = await service.session();
    return { by, body: await newGrant(service, by) };
  },
  '/account/delete': async () => {
    const by = await service.session();
    return { by, body: { confirm: by.email } };
  },
};

const refusal = (error: string) => ({ status: 400, body: { error, code: 'VALIDATION_ERROR' } });

/** Returns the expected message about a field: `field: rule`, or `field[1]: rule` if the fault is inside the field. */
const at = (field: string, rule: string) => (rule.startsWith('[') ? `${field}${rule}` : `${field}: ${rule}`);

const show = (value: unknown) => JSON.stringify(value)?.slice(0, 80);

/** The first case of each rule. */
const firstOfEach = (bad: readonly Case[]): Case[] => [
  ...new Map(bad.toReversed().map((each) => [each.rule, each])).values(),
];

describe.for(ROUTES)('$path', (whole) => {
  const { path } = whole;
  const { body, instead = {}, takesAnyId }: RouteCases = ROUTE_CASES[path] ?? { body: () => ({}) };
  const { properties, required } = readSchema(whole);
  const fields = properties.map(([name, schema]) => [name, fieldOf(path, name, schema)] as const);
  let user: TestUser;
  const send = async (change: Record<string, unknown> = {}) => {
    const [field = ''] = Object.keys(change);
    return user.post(path, { ...(instead[field] ?? (await body(user))), ...change });
  };

  beforeAll(async () => {
    const { needsSession } = ROUTES.find((route) => route.path === path) as PrincipalRoute;
    user = await (needsSession ? service.session() : service.user({ premium: true }));
  });

  /** Sends a complete valid body, with more fields that the body does not have. */
  const sendValid = async (more: object = {}) => {
    const { by, body: needed } = (await SPENT[path]?.()) ?? { by: user, body: await body(user) };
    return by.post(path, { ...more, ...needed });
  };

  test('a body with the required fields and any unknown ones is accepted', async () => {
    expect(await sendValid()).toMatchObject({ status: 200 });
    const unknown = { unknown: null, 'tags[0]': {}, constructor: 1, '': [[]] };
    expect(await sendValid(unknown)).toMatchObject({ status: 200 });
  });

  test('null in an optional field means absent', async () => {
    const optional = fields.map(([name]) => name).filter((name) => name !== 'if_updated_at');
    const nulls = Object.fromEntries(optional.map((name) => [name, null]));
    expect(await sendValid(nulls)).toMatchObject({ status: 200 });
  });

  test('refuses a body that is not an object, and one that is not JSON', async () => {
    for (const whole of [null, true, 0, 'a', [], [{}]]) {
      expect(await user.post(path, JSON.stringify(whole)), show(whole)).toMatchObject(
        refusal('body: expected an object'),
      );
    }
    for (const malformed of [
      '{',
      '{}}',
      "{'a':1}",
      '{"a":undefined}',
      'NaN',
      '\u0000',
      '{"url":"\u0001"}',
      '[1,]',
      '﻿﻿{}',
    ]) {
      expect(await user.post(path, malformed), malformed).toMatchObject(refusal('body: malformed JSON'));
    }
    for (const key of ['{"__proto__":{}}', '{"a":[{"__proto__":1}]}', '{"constructor":{"prototype":{}}}']) {
      expect(await user.post(path, key), key).toMatchObject(refusal('body: malformed JSON'));
    }
    for (const bytes of [
      [0xff],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
      [0xc0, 0x80],
      [0xfe, 0xff, 0, 0x7b, 0, 0x7d],
    ]) {
      expect(await user.post(path, Buffer.from(bytes))).toMatchObject(refusal('body: is not UTF-8'));
    }
    expect(await user.post(path, '')).toMatchObject(refusal('body: is required'));
  });

  test('refuses deep and huge JSON', async () => {
    const { bodyLimit = DEFAULT_BODY_BYTES } = ROUTES.find((route) => route.path === path)!;
    const deep = Math.min(path === '/import' ? 400_000 : 49_000, bodyLimit / 2 - 50);
    const nested = `${'['.repeat(deep)}${']'.repeat(deep)}`;
    expect(await user.post(path, nested)).toMatchObject(refusal('body: expected an object'));
    expect(await user.post(path, '['.repeat(deep))).toMatchObject(refusal('body: malformed JSON'));
    expect(await user.post(path, '{"a":'.repeat(deep / 5))).toMatchObject(refusal('body: malformed JSON'));
    for (const [field] of fields) {
      const response = await user.post(path, `{"${field}":${nested}}`);
      expect(response, field).toMatchObject({
        // An entry and an operation are refused in their place.
        status: ['bookmarks', 'operations'].includes(field) ? 200 : 400,
      });
    }
    if (bodyLimit > 400_000 && path !== '/import')
      expect(await user.post(path, `{"a":[${'0,'.repeat(200_000)}0]}`)).toMatchObject(
        refusal('body: contains too many values'),
      );
    if (path !== '/import') {
      expect(await user.post(path, `{"a":"${'a'.repeat(bodyLimit)}"}`)).toMatchObject(
        refusal('body: is too large'),
      );
    }
  });

  for (const [field, { good, bad, isCheckedByRoute }] of fields) {
    test(`${field}: is accepted at its limits, and refused beyond them with a message that names it`, async () => {
      for (const value of good) {
        const { status, body: response } = await send({ [field]: value });
        // No id at the limits belongs to this user, and no path names a tag.
        const expected =
          ['id', 'into_id', 'path'].includes(field) && !takesAnyId ? [404, 'NOT_FOUND'] : [200, undefined];
        expect([status, response.code], show(value)).toEqual(expected);
      }
      for (const { value, rule } of isCheckedByRoute ? bad : firstOfEach(bad))
        expect(await send({ [field]: value }), show(value)).toMatchObject(refusal(at(field, rule)));
      if (isCheckedByRoute) return;
      const schema = z.object({ [field]: (whole.body as z.ZodObject).shape[field] });
      for (const { value, rule } of bad)
        expect(() => parseBody(schema, { [field]: value }), show(value)).toThrow(at(field, rule));
    });
  }

  for (const field of required) {
    test(`${field}: is required`, async () => {
      const { [field]: _, ...rest } = await body(user);
      for (const without of [rest, { ...rest, [field]: null }])
        expect(await user.post(path, without)).toMatchObject(refusal(`${field}: is required`));
    });
  }
});

describe('an entry of an import has the same limits', () => {
  const named = ({ good, bad }: Field): Field => ({
    good: good.map((names) => (names as unknown[]).map((name) => ({ id: 1, name }))),
    bad: bad
      .filter(({ value }) => Array.isArray(value))
      .map(({ value, rule }) => ({ value: (value as unknown[]).map((name) => ({ name })), rule })),
  });
  /** Makes an optional field. `null` in it means absent. */
  const optional = ({ good, bad }: Field): Field => ({ good: [...good, null], bad });
  const FIELDS: [string, Field][] = [
    ['url', { good: url.good, bad: [{ value: null, rule: 'is required' }, ...url.bad] }],
    ['title', optional(text(2_048))],
    ['comment', optional(text(10_000))],
    ['tags', optional(tags)],
    ['tags', named(tags)],
    ['created_at', optional(time)],
    ['updated_at', optional(time)],
  ];

  test.for([
    ['merge', 1_048_576],
    ['merge', 0],
    ['replace', 1_048_576],
    ['replace', 0],
  ] as const)(
    '%s mode enforces them, with imports up to %i bytes inline',
    async ([mode, importInlineBytes]) => {
      await using replica = await startService({ importInlineBytes }, { database: service.database });
      const owner = await replica.user({ premium: true });
      for (const [field, { good, bad }] of FIELDS) {
        const entry = (value: unknown) => ({ url: 'http://entry.example', [field]: value });
        const taken = await owner.post('/import', { mode: 'replace', bookmarks: good.map(entry) });
        expect(taken.body, field).toEqual({ imported: good.length, skipped: 0, errors: [] });
        if (mode === 'merge') {
          const refused = bad.map(({ value }) => entry(value));
          const { body } = await owner.post('/import', { bookmarks: refused });
          // Programs that read files know before they send them what the service will refuse.
          expect(findRefusals(refused)).toMatchObject(
            body.errors.map(({ error }: { error: string }) => ({ error })),
          );
          expect(findRefusals(good.map(entry))).toEqual([]);
          expect(body.errors.map(({ error }: { error: string }) => error)).toEqual(
            bad.map(({ rule }) => at(field, rule)),
          );
          expect(body).toMatchObject({ imported: 0, skipped: 0 });
        } else {
          const [{ value, rule }] = bad as [Case];
          const { body } = await owner.post('/import', {
            mode,
            bookmarks: [{ url: 'http://a' }, entry(value)],
          });
          expect(body.code).toBe('VALIDATION_ERROR');
          expect(body.error).toContain(at(field, rule));
        }
        expect((await owner.post('/export', {})).body.count).toBe(good.length);
      }
    },
  );

  test('the url of a bad entry is named so that every client can read it', async () => {
    const { body } = await user.post('/import', {
      bookmarks: ['a\ud800', 'b\u0000', 'x'.repeat(9_000), 'javascript:1'].map((sent) => ({ url: sent })),
    });
    expect(body.errors.map((error: { url: string }) => error.url)).toEqual([
      'a\ufffd',
      'b\u0000',
      `${'x'.repeat(200)}…`,
      'javascript:1',
    ]);
  });

  test('an entry that is not an object, or has no url, is an error of that entry', async () => {
    const sent = [null, true, 0, 'http://a', [], ['http://a'], {}, { URL: 'http://a' }];
    const { body } = await user.post('/import', { bookmarks: sent });
    expect(body.errors).toEqual(
      sent.map((value, index) => ({
        index,
        url: null,
        code: 'VALIDATION_ERROR',
        error:
          typeof value === 'object' && value !== null && !Array.isArray(value)
            ? 'url: is required'
            : 'expected an object',
      })),
    );
  });
});

test('text in any script comes back as it was sent, trimmed', async () => {
  for (const title of [...FOREIGN, ...text(2_048).good]) {
    const comment = title as string;
    const { body } = await user.post('/bookmarks/add', { url: 'http://a', title, comment });
    expect(body).toMatchObject({ title: comment.trim(), comment: comment.trim() });
    expect((await user.post('/bookmarks/edit', { id: body.id, title })).body.title).toBe(comment.trim());
  }
  for (const sent of url.good as string[]) {
    expect((await user.post('/bookmarks/add', { url: sent })).body.url).toBe(sent.trim());
  }
});

test("another user's bookmarks and tags do not exist for any request", async () => {
  const owner = await service.user();
  const { body: bookmark } = await owner.post('/bookmarks/add', {
    url: 'http://owned.example',
    tags: ['owned'],
  });
  const [tag] = bookmark.tags;
  const before = (await owner.post('/export', {})).body.bookmarks;
  const attempts: [string, object][] = [
    ['/bookmarks/edit', { id: bookmark.id }],
    ['/bookmarks/edit', { id: bookmark.id, title: 'x' }],
    ['/bookmarks/edit', { id: bookmark.id, tags: ['x'] }],
    ['/bookmarks/delete', { id: bookmark.id }],
    ['/tags/update', { id: tag.id, name: 'x' }],
    ['/tags/update', { id: tag.id, name: 'owned' }],
    ['/tags/delete', { id: tag.id }],
    ['/tags/merge', { id: tag.id, into_id: 1 }],
    ['/tags/merge', { id: 1, into_id: tag.id }],
  ];
  const nobody = await service.user();
  for (const [path, body] of attempts) {
    const theirs = await nobody.post(path, body);
    const nobodys = await nobody.post(path, { ...body, id: MAX_ID });
    expect(theirs, path).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    // The responses are equal, so they do not reveal which id exists.
    expect(theirs.body).toEqual(nobodys.body);
  }
  expect((await owner.post('/export', {})).body.bookmarks).toEqual(before);
  expect((await nobody.post('/tags/list', {})).body.tags).toEqual([]);
  expect((await nobody.post('/bookmarks/search', { tag: 'owned' })).body.total).toBe(0);
  for (const choice of [{ id: bookmark.id }, { url: bookmark.url }])
    expect((await nobody.post('/bookmarks/get', choice)).body.bookmarks).toEqual([]);
  expect((await nobody.post('/bookmarks/sync', { cursor: bookmark.id - 1 })).body.bookmarks).toEqual([]);
});
