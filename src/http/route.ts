import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Config } from '../config.ts';
import type { Context } from '../context.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Endpoints, ErrorCode } from '../domain/resources.ts';
import type { Principal, Scope } from '../domain/tokens.ts';

/** The default for the maximum length of a body, in bytes. */
export const DEFAULT_BODY_BYTES = 64 * 1_024;

/**
 * The maximum length, in bytes, of a body with one bookmark. The longest valid bookmark, with every character escaped
 * as a surrogate pair, has 545,930 bytes.
 */
export const BOOKMARK_BODY_BYTES = 640 * 1_024;

/** What a handler gets for one request, after all checks that the route requires. */
export interface RouteRequest<Body> {
  context: Context;
  /** The parsed body; undefined if the route has `checksOwnBody`. */
  body: Body;
  request: FastifyRequest;
  reply: FastifyReply;
  /**
   * Set if the endpoint accepts an `Idempotency-Key` (`request-kinds.ts`) and the request has one; undefined if the
   * route has `checksOwnBody`.
   */
  idempotency?: Idempotency | undefined;
}

interface Described {
  /** The path below the base path, which is usually `/api/v1`. */
  path: string;
  summary: string;
  description: string;
  /** The schema of a successful response. Only the reference uses it. */
  response: z.ZodType;
  /** Fields that the example of a request omits, for example because they cannot be combined with other fields. */
  exampleLeavesOut?: readonly string[];
  /** Error codes in addition to those that all routes share. */
  errors?: readonly ErrorCode[];
  /** The maximum length of a body in bytes. Default: `DEFAULT_BODY_BYTES`. */
  bodyLimit?: number;
  /**
   * Whether the handler checks the body and the `Idempotency-Key` itself. If so, only the reference uses the schema of
   * the body.
   */
  checksOwnBody?: boolean;
  /** The schema of the body for the reference, if the handler checks some of the fields itself. Default: `body`. */
  describedBody?: z.ZodType;
  /**
   * Whether requests may wait for a long time. If so, the handler takes the user's permits itself, and holds none while
   * it waits.
   */
  isHeld?: boolean;
  /** The seconds that a request may take at most, if it may take longer than other requests. */
  longestSeconds?: (config: Config) => number;
  /** Whether the handler takes the user's permits itself. Routes with `isHeld` do so in any case. */
  takesOwnPermits?: boolean;
}

/** The response of a handler. A string must be JSON and is sent unchanged. An object is converted to JSON. */
export type ResponseBody = string | object;

/** An endpoint that requires a token. */
export interface PrincipalRoute<Body extends z.ZodType = z.ZodType> extends Described {
  scope: Scope;
  /** Whether the token must be that of a session. An API token is then refused, whatever its scope is. */
  needsSession?: boolean;
  body: Body;
  handle(request: RouteRequest<z.output<Body>> & { principal: Principal }): Promise<ResponseBody>;
}

/** An endpoint that needs no token. Its requests are limited by client address. */
export interface PublicRoute<Body extends z.ZodType = z.ZodType> extends Described {
  scope: 'public';
  body: Body;
  handle(request: RouteRequest<z.output<Body>>): Promise<ResponseBody>;
}

export type Route = PrincipalRoute | PublicRoute;

/** A route whose path is that of an endpoint in `resources.ts`. */
type ApiRoute = Route & { path: keyof Endpoints };

/** Returns its argument. If an endpoint of `resources.ts` has no route, the call does not compile. */
export const routesOfAll = <Given extends ApiRoute>(
  routes: readonly Given[] & Missing<Exclude<keyof Endpoints, Given['path']>>,
): readonly Route[] => routes;

/** If `Path` is `never`, a type that all routes have. Otherwise, a type that no route has and that names the path. */
type Missing<Path> = [Path] extends [never] ? unknown : { noRouteFor: Path };

/** The names of all fields of a type, at any depth. */
type Fields<T> = T extends readonly (infer Entry)[]
  ? Fields<Entry>
  : T extends object
    ? { [Name in keyof T]-?: Name | Fields<T[Name]> }[keyof T]
    : never;

/**
 * Compares `Type`, the type of a schema's values, with `Declared`, the type in `resources.ts`. If they are equal, the
 * result is `Schema`. Otherwise the result is a type that no schema has. In that case, the route does not compile, and
 * the compiler's message contains the declared type.
 *
 * Two types are equal if each is assignable to the other and both have the same field names. The names are compared
 * because types that differ only in optional fields are assignable to each other.
 */
type Matching<Schema, Type, Declared> = [Type, Declared, Fields<Type>, Fields<Declared>] extends [
  Declared,
  Type,
  Fields<Declared>,
  Fields<Type>,
]
  ? Schema
  : { differsFromResources: Declared };

/** Requires that a route's schemas have the types that `resources.ts` declares for its path. */
interface AsDeclared<Path extends keyof Endpoints, Body extends z.ZodType, Response extends z.ZodType> {
  path: Path;
  body: Matching<Body, z.input<Body>, Endpoints[Path]['request']>;
  response: Matching<Response, z.output<Response>, Endpoints[Path]['response']>;
}

/** Gives the handler's `body` its type, and checks the route's schemas against `resources.ts` at compile time. */
export const principalRoute = <
  Path extends keyof Endpoints,
  Body extends z.ZodType,
  Response extends z.ZodType,
>(
  route: PrincipalRoute<Body> & AsDeclared<Path, Body, Response>,
): PrincipalRoute & { path: Path } => route;
export const publicRoute = <Path extends keyof Endpoints, Body extends z.ZodType, Response extends z.ZodType>(
  route: PublicRoute<Body> & AsDeclared<Path, Body, Response>,
): PublicRoute & { path: Path } => route;
