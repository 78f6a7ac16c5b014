import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Context } from '../context.ts';
import type { Idempotency } from '../domain/idempotency.ts';
import type { Endpoints, ErrorCode } from '../domain/resources.ts';
import type { Principal, Scope } from '../domain/tokens.ts';

/** The largest body of a route that takes no long texts. */
export const DEFAULT_BODY_BYTES = 64 * 1_024;

/** A legal bookmark whose every character is an escaped pair of surrogates has 545,930 bytes. */
export const BOOKMARK_BODY_BYTES = 640 * 1_024;

/** One request of a route, its token, limits, scope and body already checked. */
export interface RouteRequest<Body> {
  context: Context;
  body: Body;
  request: FastifyRequest;
  reply: FastifyReply;
  /** Of a route that takes a key, where one came. */
  idempotency?: Idempotency | undefined;
}

interface Described {
  /** Appended to `/api/v1`. */
  path: string;
  summary: string;
  description: string;
  /** Schema of a success, for the reference. */
  response: z.ZodType;
  /** Fields that the example of a request leaves out, as they cannot stand beside others. */
  exampleLeavesOut?: readonly string[];
  /** Codes it may respond with, beside those of every route of its kind. */
  errors?: readonly ErrorCode[];
  /** Largest body in bytes; default `DEFAULT_BODY_BYTES`. */
  bodyLimit?: number;
  /** The handler checks the body by itself; the schema is for the reference. */
  checksOwnBody?: boolean;
  /** Takes an `Idempotency-Key`. */
  isIdempotent?: boolean;
  /** May be held for long, and so takes a permit of its user for each of its statements only. */
  isHeld?: boolean;
  /** Takes a permit of its user for each of its statements, though it is not held. */
  takesOwnPermits?: boolean;
}

/** JSON text is sent as it stands; an object is serialised. */
export type ResponseBody = string | object;

/** An endpoint for principals with a token of the scope. */
export interface PrincipalRoute<Body extends z.ZodType = z.ZodType> extends Described {
  scope: Scope;
  /** An API token is refused, whatever its scope. */
  needsSession?: boolean;
  body: Body;
  handle(request: RouteRequest<z.output<Body>> & { principal: Principal }): Promise<ResponseBody>;
}

/** An endpoint that needs no token, limited by client address. */
export interface PublicRoute<Body extends z.ZodType = z.ZodType> extends Described {
  scope: 'public';
  body: Body;
  handle(request: RouteRequest<z.output<Body>>): Promise<ResponseBody>;
}

export type Route = PrincipalRoute | PublicRoute;

/** A route of the API: its path is one of the described endpoints. */
type ApiRoute = Route & { path: keyof Endpoints };

/** Takes a route for each endpoint of `resources.ts`: a list that lacks one does not compile. */
export const routesOfAll = <Given extends ApiRoute>(
  routes: readonly Given[] & Missing<Exclude<keyof Endpoints, Given['path']>>,
): readonly Route[] => routes;

type Missing<Path> = [Path] extends [never] ? unknown : { noRouteFor: Path };

/** The names of all fields, at any depth: optional ones that differ are assignable to each other. */
type Fields<T> = T extends readonly (infer Entry)[]
  ? Fields<Entry>
  : T extends object
    ? { [Name in keyof T]-?: Name | Fields<T[Name]> }[keyof T]
    : never;

/** The schema where its type is the declared one; else what no schema is, so that the route does not compile. */
type Matching<Schema, Type, Declared> = [Type, Declared, Fields<Type>, Fields<Declared>] extends [
  Declared,
  Type,
  Fields<Declared>,
  Fields<Type>,
]
  ? Schema
  : { differsFromResources: Declared };

/** Holds a route's schemas to the plain types that clients are given. */
interface AsDeclared<Path extends keyof Endpoints, Body extends z.ZodType, Response extends z.ZodType> {
  path: Path;
  body: Matching<Body, z.input<Body>, Endpoints[Path]['request']>;
  response: Matching<Response, z.output<Response>, Endpoints[Path]['response']>;
}

/** Ties a route's handler to the output of its own body schema, and its schemas to `resources.ts`. */
export const principalRoute = <
  Path extends keyof Endpoints,
  Body extends z.ZodType,
  Response extends z.ZodType,
>(
  route: PrincipalRoute<Body> & AsDeclared<Path, Body, Response>,
): PrincipalRoute & { path: Path } => route as PrincipalRoute & { path: Path };
export const publicRoute = <Path extends keyof Endpoints, Body extends z.ZodType, Response extends z.ZodType>(
  route: PublicRoute<Body> & AsDeclared<Path, Body, Response>,
): PublicRoute & { path: Path } => route as PublicRoute & { path: Path };
