import { z } from 'zod';
import type { ErrorCode } from '../domain/resources.ts';
import { STATUS_BY_CODE } from './error-responses.ts';
import { exampleOf } from './openapi-examples.ts';
import { DEFAULT_BODY_BYTES, type Route } from './route.ts';

/** The OpenAPI 3.1 document, made of the routes and the same schemas that check requests. */

type Json = Record<string, unknown>;

const INFO = {
  title: 'Bookmark Service API',
  version: '1',
  license: { name: 'MIT', identifier: 'MIT' },
  contact: { name: 'The maintainers of the Bookmark Service' },
};

/** The groups of operations, by the first part of their paths. */
const TAGS: Record<string, string> = {
  auth: 'Exchange codes for session tokens',
  user: "The current user's profile",
  logout: 'End the current session',
  account: 'Delete the account',
  bookmarks: 'Create, edit, delete, search, list and sync bookmarks',
  trash: 'List, restore and delete deleted bookmarks',
  tags: 'List, create, rename, delete and merge tags',
  tokens: 'API tokens',
  sessions: 'Sessions',
  export: 'Export all bookmarks',
  import: 'Import bookmarks',
};

/** `export` and `import` are reserved words in the languages that code is generated for. */
const OPERATION_IDS: Record<string, string> = {
  '/export': 'export_bookmarks',
  '/import': 'import_bookmarks',
};

const DESCRIPTION = `Stores bookmarks for authenticated users: create, edit, delete, search, list, sync with long polling,
tags, import and export. Every endpoint is a POST with a JSON body, an empty object where it takes nothing.

**Errors** are \`{ "error": string, "code": string }\`. **Limits**: 100 requests of a token and 500 of an account
in any 60 s; a deployment may set others, and others again for premium accounts. Every response to a valid token tells of the
limit with fewer requests left, in \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\`, \`X-RateLimit-Reset\` and
\`X-RateLimit-Scope\`. **Scopes**: \`read\` reads; \`write\` reads and changes.`;

/** Schemas that several operations share, by name. */
type Shared = Record<string, Json>;

/**
 * The JSON Schema of a body. Schemas with an `id` go to `shared`. Responses may gain fields within v1 (decision 29),
 * so their schemas allow others.
 */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', shared: Shared): Json {
  const json = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    target: 'draft-2020-12',
    override({ zodSchema, jsonSchema }) {
      // Zod drops the examples of values that are transformed on their way in.
      const meta = z.globalRegistry.get(zodSchema as unknown as z.ZodType);
      if (Array.isArray(meta?.examples)) jsonSchema.examples = meta.examples;
      delete jsonSchema.additionalProperties;
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    },
  });
  // References are resolved in the document, not in the schema that contains them.
  const text = JSON.stringify(json).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $schema: _, id: __, $defs, anyOf, ...own } = JSON.parse(text);
  Object.assign(shared, $defs);
  if (anyOf === undefined) return own;
  // A request has one of the forms, never two at once. A response of one form may fit another one too.
  return { [io === 'input' ? 'oneOf' : 'anyOf']: anyOf, ...own };
}

const HEADERS = {
  'X-Request-Id': {
    description: 'The one that came with the request, or a new one; it stands in the log.',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: "Requests that any window admits: that of the account's tier.",
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': { description: 'Requests left now.', schema: { type: 'integer' } },
  'X-RateLimit-Reset': {
    description:
      'Unix time in seconds at which the oldest counted request leaves the window; of a refused request, at which a slot is free.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Scope': {
    description: 'Whose limit the other three headers tell of; of a refused request, whose limit refused it.',
    schema: { type: 'string', enum: ['token', 'account', 'address'] },
  },
  'Retry-After': { description: 'Seconds to wait, at least 1.', schema: { type: 'integer', minimum: 1 } },
};

/** The headers of responses with a status: rate limits wherever the limiter has counted the request. */
function headersOf(status: number): Json {
  const names: (keyof typeof HEADERS)[] = ['X-Request-Id'];
  if (![401, 500, 503].includes(status))
    names.push('X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Scope');
  if (status === 429 || status === 503) names.push('Retry-After');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes a repeat safe: within 24 hours the same key with the same request is answered as it first was; with ' +
    'another request it is a VALIDATION_ERROR.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

const CONDITIONS: Record<ErrorCode, string> = {
  VALIDATION_ERROR: 'The body lacks a field or holds invalid data; the message names the field and the rule.',
  INVALID_TOKEN: 'The token is missing, invalid, expired or revoked.',
  ACCOUNT_SUSPENDED: 'Who runs the service has suspended the account; nothing of it is deleted.',
  PERMISSION_DENIED: 'The token lacks the scope that the operation needs.',
  LIMIT_EXCEEDED: 'A limit of the account is reached.',
  NOT_FOUND: 'What the request names does not exist.',
  CONFLICT: 'The bookmark was changed since the time in `if_updated_at`; nothing was done.',
  RATE_LIMITED: 'Too many requests.',
  INTERNAL_ERROR: 'A fault of the service.',
  UNAVAILABLE: 'The service cannot answer now; nothing was changed unless the answer was lost on its way.',
};

function codesOf(route: Route): ErrorCode[] {
  const common: ErrorCode[] = ['VALIDATION_ERROR', 'RATE_LIMITED', 'INTERNAL_ERROR', 'UNAVAILABLE'];
  const ofPrincipals: ErrorCode[] =
    route.scope === 'public' ? [] : ['INVALID_TOKEN', 'ACCOUNT_SUSPENDED', 'PERMISSION_DENIED'];
  return [...new Set([...common, ...ofPrincipals, ...(route.errors ?? [])])];
}

/** Error responses by status; several codes may share one. */
function errorResponses(route: Route): Json {
  const codesByStatus = Map.groupBy(codesOf(route), (code) => STATUS_BY_CODE[code]);
  return Object.fromEntries(
    [...codesByStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [
        status,
        {
          description: codes.map((code) => `${code}: ${CONDITIONS[code]}`).join(' '),
          headers: headersOf(status),
          content: {
            'application/json': {
              schema: { $ref: '#/components/schemas/Error' },
              examples: Object.fromEntries(
                codes.map((code) => [code, { value: { error: CONDITIONS[code], code } }]),
              ),
            },
          },
        },
      ]),
  );
}

/** `/tags/create` as `TagsCreate`: the names of its schemas begin with it. */
const pascalCase = (path: string): string =>
  path.replace(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase());

/** A JSON body by a named schema, with an example made from those of its fields. */
function contentOf(name: string, schema: Json, shared: Shared, leftOut: readonly string[] = []): Json {
  const example = Object.entries(exampleOf(schema, shared) as Json).filter(
    ([name]) => !leftOut.includes(name),
  );
  const isNamed = '$ref' in schema;
  if (!isNamed) shared[name] = schema;
  return {
    'application/json': {
      schema: isNamed ? schema : { $ref: `#/components/schemas/${name}` },
      example: Object.fromEntries(example),
    },
  };
}

function describeAccess(route: Route): string {
  if (route.scope === 'public') return 'Public; limited by client address.';
  return `Scope: ${route.scope}.${route.needsSession ? ' A session token only.' : ''}`;
}

/** A number of bytes in whole units. */
const formatBytes = (bytes: number): string =>
  bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;

function operationOf(route: Route, shared: Shared): Json {
  const isPublic = route.scope === 'public';
  const name = pascalCase(route.path);
  return {
    summary: route.summary,
    description: `${route.description}\n\n${describeAccess(route)}`,
    operationId: OPERATION_IDS[route.path] ?? route.path.slice(1).replaceAll('/', '_'),
    tags: [route.path.split('/')[1]],
    ...(isPublic && { security: [] }),
    ...(route.isIdempotent && { parameters: [IDEMPOTENCY_KEY] }),
    requestBody: {
      description: `At most ${formatBytes(route.bodyLimit ?? DEFAULT_BODY_BYTES)}; a longer one is a VALIDATION_ERROR.`,
      required: true,
      content: contentOf(
        `${name}Request`,
        schemaOf(route.body, 'input', shared),
        shared,
        route.exampleLeavesOut,
      ),
    },
    responses: {
      200: {
        description: 'Success.',
        headers: headersOf(200),
        content: contentOf(`${name}Response`, schemaOf(route.response, 'output', shared), shared),
      },
      ...errorResponses(route),
    },
  };
}

/** Makes the document of the routes below a base path. */
export function describeApi(routes: readonly Route[], basePath: string): Json {
  const shared: Shared = {};
  const paths = routes.map((route) => [route.path, { post: operationOf(route, shared) }]);
  return {
    openapi: '3.1.0',
    info: { ...INFO, description: DESCRIPTION },
    servers: [{ url: basePath }],
    security: [{ token: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A session token or an API token. Each operation says which scope it needs.',
        },
      },
      headers: HEADERS,
      schemas: {
        ...shared,
        Error: {
          type: 'object',
          required: ['error', 'code'],
          properties: {
            error: { type: 'string', description: 'For people; names the field and the rule.' },
            code: { type: 'string', enum: Object.keys(STATUS_BY_CODE) },
          },
        },
      },
    },
  };
}
