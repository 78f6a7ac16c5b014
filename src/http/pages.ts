import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { PendingUnavailable } from '../coordination/port.ts';
import { type ApiError, invalid } from '../domain/errors.ts';
import { messageOf } from '../domain/thrown.ts';
import { type Page, PRIVATE_HEADERS, pageHeaders, renderPage } from '../sign-in/page.ts';
import { badRequestPage, faultPage, limitedPage } from '../sign-in/pages.ts';
import { SignInError } from '../sign-in/sign-in-error.ts';
import { limitAddress } from './authentication.ts';
import { toApiError } from './error-responses.ts';

/** The pages of signing in. Requests are limited by address, and errors are pages too. */

/** One request for a page. */
export interface PageRequest {
  request: FastifyRequest;
  reply: FastifyReply;
  query: PageQuery;
}

/** Adds a page. `handle` returns the page, or the address to redirect to. */
export function addPage(
  app: FastifyInstance,
  context: Context,
  url: string,
  handle: (given: PageRequest) => Promise<Page | string>,
): void {
  app.get(url, {
    onRequest: (request, reply) => limitAddress(context, request, reply, 'logins'),
    // Scripts of other origins must not read these pages.
    config: { cors: false } as object,
    errorHandler: (error, request, reply) => sendPage(reply, pageOf(context, error, request)),
    handler: async (request, reply) => {
      const result = await handle({ request, reply, query: new PageQuery(request) });
      return typeof result === 'string' ? redirect(reply, result) : sendPage(reply, result);
    },
  });
}

/** The query parameters of a page. */
export class PageQuery {
  /** Undefined for a parameter that was sent twice: two readers could pick different values. */
  readonly #parameters = new Map<string, string | undefined>();
  /** The query string as it was sent. */
  readonly text: string;

  constructor({ raw }: FastifyRequest) {
    const mark = raw.url!.indexOf('?');
    this.text = mark < 0 ? '' : raw.url!.slice(mark + 1);
    for (const [name, value] of new URLSearchParams(this.text))
      this.#parameters.set(name, this.#parameters.has(name) ? undefined : value);
  }

  /** Returns a parameter. Throws `VALIDATION_ERROR` if it was sent twice. */
  get(name: string): string | undefined {
    const value = this.#parameters.get(name);
    if (value === undefined && this.#parameters.has(name)) throw invalid(`${name}: was sent more than once`);
    return value;
  }

  /** All parameters by name. */
  toObject(): Record<string, string> {
    return Object.fromEntries([...this.#parameters.keys()].map((name) => [name, this.get(name)!]));
  }
}

const sendPage = (reply: FastifyReply, page: Page): FastifyReply =>
  reply.code(page.status).headers(pageHeaders(page)).send(renderPage(page));

/** Redirects to another address, always by GET. */
const redirect = (reply: FastifyReply, address: string): FastifyReply =>
  reply.code(303).headers(PRIVATE_HEADERS).header('location', address).send();

/** The page for a thrown error. */
function pageOf(context: Context, error: unknown, request: FastifyRequest): Page {
  const name = context.config.signIn.provider?.name;
  if (error instanceof SignInError) {
    context.metrics.signInEnded(error.fault);
    const level = error.isOfProvider ? 'warn' : 'info';
    request.log[level]({ fault: error.fault, reason: error.message }, 'sign-in failed');
    return faultPage(error.fault, name, '/');
  }
  const known = error instanceof PendingUnavailable ? undefined : toApiError(error);
  if (known && known.code !== 'UNAVAILABLE') return pageOfApiError(known);
  const isOutage = known !== undefined || error instanceof PendingUnavailable;
  if (isOutage) request.unserved = messageOf(error);
  else request.log.error({ err: error }, 'request failed');
  context.metrics.signInEnded('unavailable');
  return { ...faultPage('unavailable', name, '/'), ...(!isOutage && { status: 500 }) };
}

const pageOfApiError = ({ code, message, retryAfterSeconds = 1 }: ApiError): Page =>
  code === 'RATE_LIMITED' ? limitedPage(retryAfterSeconds) : badRequestPage(message);
