import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Context } from '../context.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Endpoints, ErrorCode } from '../domain/resources.ts';
import type { Principal, Scope } from '../domain/tokens.ts';

/** The default limit of a body. */
export const DEFAULT_BODY_BYTES = 64 * 1_024;

/**
 * The limit of a body with one bookmark. The longest valid bookmark, with every character escaped as a surrogate
 * pair, has 545,930 bytes.
 */
export const BOOKMARK_BODY_BYTES = 640 * 1_024;

/** One request of a route. Its token, limits, scope and body have been checked. */
export interface RouteRequest<Body> {
  context: Context;
  body: Body;
  request: FastifyRequest;
  reply: FastifyReply;
  /** Set if the route accepts an `Idempotency-Key` and the request has one. */
  idempotency?: Idempotency | undefined;
}

interface Described {
  /** Appended to `/api/v1`. */
  path: string;
  summary: string;
  description: string;
  /** The schema of a success, for the reference. */
  response: z.ZodType;
  /** Fields that the example request omits, because they cannot be combined with others. */
  exampleLeavesOut?: readonly string[];
  /** Error codes in addition to those that all routes share. */
  errors?: readonly ErrorCode[];
  /** Maximum body in bytes. Default: `DEFAULT_BODY_BYTES`. */
  bodyLimit?: number;
  /** The handler checks the body itself. The schema only serves the reference. */
  checksOwnBody?: boolean;
  /** Accepts an `Idempotency-Key`. */
  isIdempotent?: boolean;
  /** May be held as a long poll. Such a route takes a user's permit only for each statement, not while it waits. */
  isHeld?: boolean;
  /** Takes a user's permit for each of its statements, although it is not held. */
  takesOwnPermits?: boolean;
}

/** A string is JSON text and is sent unchanged. An object is serialized. */
export type ResponseBody = string | object;

/** An endpoint that requires a token. */
export interface PrincipalRoute<Body extends z.ZodType = z.ZodType> extends Described {
  scope: Scope;
  /** Refuses API tokens, whatever their scope. */
  needsSession?: boolean;
  body: Body;
  handle(request: RouteRequest<z.output<Body>> & { principal: Principal }): Promise<ResponseBody>;
}

/** An endpoint without a token, limited by client address. */
export interface PublicRoute<Body extends z.ZodType = z.ZodType> extends Described {
  scope: 'public';
  body: Body;
  handle(request: RouteRequest<z.output<Body>>): Promise<ResponseBody>;
}

export type Route = PrincipalRoute | PublicRoute;

/** A route whose path is one of the endpoints in `resources.ts`. */
type ApiRoute = Route & { path: keyof Endpoints };

/** Takes the routes of the API. If an endpoint of `resources.ts` has no route, the call does not compile. */
export const routesOfAll = <Given extends ApiRoute>(
  routes: readonly Given[] & Missing<Exclude<keyof Endpoints, Given['path']>>,
): readonly Route[] => routes;

type Missing<Path> = [Path] extends [never] ? unknown : { noRouteFor: Path };

/** The names of all fields of a type, at any depth. */
type Fields<T> = T extends readonly (infer Entry)[]
  ? Fields<Entry>
  : T extends object
    ? { [Name in keyof T]-?: Name | Fields<T[Name]> }[keyof T]
    : never;

/**
 * Compares `Type`, the type of a schema, with the type that `resources.ts` declares. If they are equal, this is `Schema`.
 * Otherwise it is a type that no schema has, so the route does not compile, and the compiler names the declared type.
 *
 * Two types are equal if each is assignable to the other and both have the same field names. The names count, because
 * types that differ only in optional fields are assignable to each other.
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

/** Gives the handler the type of its body, and checks the route's schemas against `resources.ts` at compile time. */
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
