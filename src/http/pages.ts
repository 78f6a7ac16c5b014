import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { type ApiError, invalid, unavailable } from '../domain/errors.ts';
import { messageOf } from '../domain/thrown.ts';
import { type Page, PRIVATE_HEADERS, pageHeaders, renderPage } from '../sign-in/page.ts';
import { badRequestPage, faultPage, limitedPage } from '../sign-in/pages.ts';
import { SignInError } from '../sign-in/sign-in-error.ts';
import { limitAddress } from './authentication.ts';
import { toApiError } from './error-responses.ts';

/** The pages for signing in. Requests for these pages are limited by client address, and errors are sent as pages. */

/** A request for a page, and its reply. */
export interface PageRequest {
  request: FastifyRequest;
  reply: FastifyReply;
}

/** Adds a page. `handle` returns the page, or the address to redirect to. */
export function addPage(
  app: FastifyInstance,
  context: Pick<Context, 'config' | 'coordination' | 'metrics' | 'overload'>,
  url: string,
  handle: (pageRequest: PageRequest) => Promise<Page | string>,
): void {
  app.get(url, {
    onRequest: (request, reply) => limitAddress(context, request, reply, 'logins'),
    // Scripts of other origins must not read these pages.
    config: { cors: false } as object,
    errorHandler: (error, request, reply) => sendPage(reply, pageOf(context, error, request)),
    handler: async (request, reply) => {
      const result = await handle({ request, reply });
      return typeof result === 'string' ? redirect(reply, result) : sendPage(reply, result);
    },
  });
}

/** Returns the public origin. Throws `UNAVAILABLE` if the service does not listen yet. */
export function originOf({ site: { origin } }: Pick<Context, 'site'>): string {
  if (origin === undefined) throw unavailable('the service is starting');
  return origin;
}

/** Returns the query string of a request as it was sent, without the question mark. */
export const queryOf = ({ url }: FastifyRequest): string => url.replace(/^[^?]*\??/, '');

/**
 * Returns the query parameters of a request. Throws `VALIDATION_ERROR` if one was sent twice, because two programs that
 * read the query could use different values.
 */
export function readParameters(request: FastifyRequest): Record<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(queryOf(request))) {
    if (parameters.has(name)) throw invalid(`${name}: was sent more than once`);
    parameters.set(name, value);
  }
  return Object.fromEntries(parameters);
}

const sendPage = (reply: FastifyReply, page: Page): FastifyReply =>
  reply.code(page.status).headers(pageHeaders(page)).send(renderPage(page));

/** Redirects the browser to another address. With status 303, the browser always uses GET there. */
const redirect = (reply: FastifyReply, address: string): FastifyReply =>
  reply.code(303).headers(PRIVATE_HEADERS).header('location', address).send();

/**
 * Returns the page for a thrown error. An invalid or rate-limited request is neither counted nor logged as a failure.
 */
function pageOf(context: Pick<Context, 'config' | 'metrics'>, error: unknown, request: FastifyRequest): Page {
  const providerName = context.config.signIn.provider?.name;
  if (error instanceof SignInError) {
    context.metrics.signInEnded(error.fault);
    const level = error.isOfProvider ? 'warn' : 'info';
    request.log[level]({ fault: error.fault, reason: error.message }, 'sign-in failed');
    return faultPage(error.fault, providerName, '/');
  }
  const apiError = toApiError(error);
  const isOutage = apiError?.code === 'UNAVAILABLE';
  if (apiError && !isOutage) return pageOfApiError(apiError);
  if (isOutage) request.unserved = messageOf(error);
  else request.log.error({ err: error }, 'request failed');
  context.metrics.signInEnded('unavailable');
  const page = faultPage('unavailable', providerName, '/');
  return isOutage ? page : { ...page, status: 500 };
}

const pageOfApiError = ({ code, message, retryAfterSeconds = 1 }: ApiError): Page =>
  code === 'RATE_LIMITED' ? limitedPage(retryAfterSeconds) : badRequestPage(message);
