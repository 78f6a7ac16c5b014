import { z } from 'zod';
import type { Config } from '../config.ts';
import { BOUNDS, MAX_ID } from '../domain/fields.ts';
import { acceptsKey } from '../domain/request-kinds.ts';
import type { ErrorCode } from '../domain/resources.ts';
import { CLIENT_MARGIN_SECONDS } from './client-timeouts.ts';
import { STATUS_BY_CODE } from './error-responses.ts';
import { exampleOf } from './openapi-examples.ts';
import { DEFAULT_BODY_BYTES, type Route } from './route.ts';

/** Builds the OpenAPI 3.1 document from the routes and the schemas that check requests. */

type Json = Record<string, unknown>;

const INFO = {
  title: 'Bookmark Service API',
  version: '1',
  license: { name: 'MIT', identifier: 'MIT' },
  contact: { name: 'The maintainers of the Bookmark Service' },
};

/** The descriptions of the tags. A tag is the first segment of the paths of its operations. */
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

/**
 * The operation ids that are not made from the path, keyed by path. Ids made from these paths would be reserved words
 * in many languages.
 */
const OPERATION_IDS: Record<string, string> = {
  '/export': 'export_bookmarks',
  '/import': 'import_bookmarks',
};

const DESCRIPTION = `Stores bookmarks for authenticated users: create, edit, delete, search, list, sync with long polling,
tags, import and export. Every endpoint is a POST with a JSON body. Send an empty object to an endpoint without parameters.

**Errors** are \`{ "error": string, "code": string }\`. **Limits**: 100 requests per token in any 60 s. A deployment can
set another limit, and a separate one for premium accounts. Every response to a valid token describes the token's limit
in \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\`. **Scopes**: \`read\` allows reading. \`write\` also allows changes.`;

const MAX_INT32 = 2 ** 31 - 1;

/** Schemas that operations share, by name. */
type Shared = Record<string, Json>;

/**
 * Returns the JSON Schema of a body. If a schema has an `id`, adds it to `shared`. Additional fields are allowed,
 * because later releases of v1 may add fields to responses (docs/contract.md, decision 29).
 */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', shared: Shared): Json {
  const json = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    target: 'draft-2020-12',
    override({ zodSchema, jsonSchema }) {
      // Zod drops the examples of values that it transforms, so they are set again here.
      const meta = z.globalRegistry.get(zodSchema);
      if (Array.isArray(meta?.examples)) jsonSchema.examples = meta.examples;
      delete jsonSchema.additionalProperties;
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
      // Without the format, some generators choose 32 bits.
      if (jsonSchema.type === 'integer' && (jsonSchema.maximum ?? MAX_ID) > MAX_INT32)
        jsonSchema.format = 'int64';
      if (io === 'input') describeDefault(jsonSchema);
    },
  });
  // Zod's references point into the schema that contains them. They must point into the document.
  const text = JSON.stringify(json).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { $schema: _, id: __, $defs, anyOf, ...rest } = JSON.parse(text);
  Object.assign(shared, $defs);
  if (anyOf === undefined) return rest;
  // A request matches exactly one of the alternatives. A response may match several of them.
  return { [io === 'input' ? 'oneOf' : 'anyOf']: anyOf, ...rest };
}

/**
 * Says the default of an optional field of a request in words. Generators of types make a field with a `default`
 * required.
 */
function describeDefault(schema: { default?: unknown; description?: string; examples?: unknown[] }): void {
  if (schema.default === undefined) return;
  const text = `Default: ${JSON.stringify(schema.default)}.`;
  schema.description = schema.description === undefined ? text : `${schema.description} ${text}`;
  schema.examples ??= [schema.default];
  delete schema.default;
}

const HEADERS = {
  'X-Request-Id': {
    description: 'The id from the same header of the request, or a new one. The log contains it.',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: "How many requests are allowed per window. Depends on the account's tier.",
    schema: { type: 'integer' },
  },
  'X-RateLimit-Remaining': { description: 'How many requests are left now.', schema: { type: 'integer' } },
  'X-RateLimit-Reset': {
    description:
      'Unix time in seconds when the oldest counted request leaves the window. If no requests are left: when the next request is allowed.',
    schema: { type: 'integer' },
  },
  'X-RateLimit-Scope': {
    description:
      "Present if the account's limit refused the request. A deployment can limit the requests of all tokens of an account together.",
    schema: { type: 'string', enum: ['account'] },
  },
  'X-Retry-After-Ms': {
    description:
      'Milliseconds to wait before the next poll. Only in the empty response of a replica that is stopping.',
    schema: { type: 'integer', minimum: 0 },
  },
  'Retry-After': { description: 'Seconds to wait, at least 1.', schema: { type: 'integer', minimum: 1 } },
};

/**
 * Returns the headers of responses with this status. Responses with 401, 500 or 503 may come before the request is
 * counted, so no rate-limit headers are promised for them.
 */
function headersOf(status: number, isHeld = false): Json {
  const names: (keyof typeof HEADERS)[] = ['X-Request-Id'];
  if (![401, 500, 503].includes(status))
    names.push('X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset');
  if (status === 429) names.push('X-RateLimit-Scope');
  if (status === 429 || status === 503) names.push('Retry-After');
  if (isHeld) names.push('X-Retry-After-Ms');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes a retry safe. Within 24 hours the same key with the same request returns the first response again. The ' +
    'same key with another request is a VALIDATION_ERROR.',
  schema: { type: 'string', minLength: 1, maxLength: BOUNDS.idempotencyKey },
};

const CONDITIONS: Record<ErrorCode, string> = {
  VALIDATION_ERROR: 'A field is missing or invalid. The message names the field and the rule.',
  INVALID_TOKEN: 'The token is missing, invalid, expired or revoked.',
  ACCOUNT_SUSPENDED: 'The operator has suspended the account. Its data is kept.',
  PERMISSION_DENIED:
    'The token does not have the required scope, or the operation requires a session or a recent sign-in.',
  LIMIT_EXCEEDED: 'A limit of the account is reached.',
  NOT_FOUND: 'The requested item does not exist.',
  CONFLICT: 'The bookmark was changed after `if_updated_at`. The request changed nothing.',
  RATE_LIMITED: 'Too many requests.',
  INTERNAL_ERROR: 'An unexpected failure of the service.',
  UNAVAILABLE:
    'The service is temporarily unavailable. The request changed nothing, unless the service lost the response of ' +
    'its database.',
};

function codesOf(route: Route): ErrorCode[] {
  const common: ErrorCode[] = ['VALIDATION_ERROR', 'RATE_LIMITED', 'INTERNAL_ERROR', 'UNAVAILABLE'];
  const tokenErrors: ErrorCode[] =
    route.scope === 'public' ? [] : ['INVALID_TOKEN', 'ACCOUNT_SUSPENDED', 'PERMISSION_DENIED'];
  return [...new Set([...common, ...tokenErrors, ...(route.errors ?? [])])];
}

/** Describes the error responses of a route, by status. Several codes may share a status. */
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

/** Converts a path such as `/tags/create` to `TagsCreate`. The names of the path's schemas begin with this text. */
const pascalCase = (path: string): string =>
  path.replace(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase());

/**
 * Describes a JSON body by its schema and an example. The example consists of the examples of the fields, without the
 * fields in `leftOut`. A schema that is not a reference is added to `shared` under `name`.
 */
function contentOf(name: string, schema: Json, shared: Shared, leftOut: readonly string[] = []): Json {
  const example = Object.entries(exampleOf(schema, shared) as Json).filter(
    ([field]) => !leftOut.includes(field),
  );
  const isReference = '$ref' in schema;
  if (!isReference) shared[name] = schema;
  return {
    'application/json': {
      schema: isReference ? schema : { $ref: `#/components/schemas/${name}` },
      example: Object.fromEntries(example),
    },
  };
}

function describeAccess(route: Route): string {
  if (route.scope === 'public') return 'Public. Limited by client address.';
  return `Scope: ${route.scope}.${route.needsSession ? ' Requires a session token.' : ''}`;
}

/** Says the time limit that a client needs, if the response may take long. */
const describeTimeout = (seconds: number): string =>
  `Give this request at least ${seconds} s, because the default time limits of many clients are shorter.`;

const formatBytes = (bytes: number): string =>
  bytes >= 1_048_576 ? `${bytes / 1_048_576} MiB` : `${bytes / 1_024} KiB`;

function operationOf(route: Route, shared: Shared, config: Config): Json {
  const isPublic = route.scope === 'public';
  const name = pascalCase(route.path);
  const timeout = route.longestSeconds && route.longestSeconds(config) + CLIENT_MARGIN_SECONDS;
  return {
    summary: route.summary,
    description: [
      route.description,
      describeAccess(route),
      ...(timeout === undefined ? [] : [describeTimeout(timeout)]),
    ].join('\n\n'),
    ...(timeout !== undefined && { 'x-client-timeout-seconds': timeout }),
    operationId: OPERATION_IDS[route.path] ?? route.path.slice(1).replaceAll('/', '_'),
    tags: [route.path.split('/')[1]],
    ...(isPublic && { security: [] }),
    ...(acceptsKey(route.path) && { parameters: [IDEMPOTENCY_KEY] }),
    requestBody: {
      description: `At most ${formatBytes(route.bodyLimit ?? DEFAULT_BODY_BYTES)}. A larger body is a VALIDATION_ERROR.`,
      required: true,
      content: contentOf(
        `${name}Request`,
        schemaOf(route.describedBody ?? route.body, 'input', shared),
        shared,
        route.exampleLeavesOut,
      ),
    },
    responses: {
      200: {
        description: 'Success.',
        headers: headersOf(200, route.scope !== 'public' && route.isHeld),
        content: contentOf(`${name}Response`, schemaOf(route.response, 'output', shared), shared),
      },
      ...errorResponses(route),
    },
  };
}

/** Returns the OpenAPI document of routes that are served below `basePath`. The config decides the time limits. */
export function describeApi(routes: readonly Route[], basePath: string, config: Config): Json {
  const shared: Shared = {};
  const paths = routes.map((route) => [route.path, { post: operationOf(route, shared, config) }]);
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
          description: 'A session token or an API token. Each operation names the scope that it requires.',
        },
      },
      headers: HEADERS,
      schemas: {
        ...shared,
        Error: {
          type: 'object',
          required: ['error', 'code'],
          properties: {
            error: {
              type: 'string',
              description: 'A text for people. If a field is invalid, the text names the field and the rule.',
            },
            code: { type: 'string', enum: Object.keys(STATUS_BY_CODE) },
          },
        },
      },
    },
  };
}
