import type { FastifyRequest } from 'fastify';
import { invalid } from '../../domain/errors.ts';
import { parseShortJson } from '../../domain/json.ts';
import type { Bodies } from '../bodies.ts';
import { BOOKMARK_BODY_BYTES, DEFAULT_BODY_BYTES } from '../route.ts';

/** Reads request bodies in the forms that linkding's clients use. */

const JSON_TYPE = /^application\/json *(;|$)/i;
const FORM_TYPE = /^(application\/x-www-form-urlencoded|multipart\/form-data) *(;|$)/i;

/** Matches the names under which clients send the entries of a list. */
const LIST_NAME = /^tag_names(\[\d*\])?$/;

/**
 * Returns the fields of a body: JSON, or a form of at most 64 KiB without files. Returns undefined for an absent or
 * empty body, whatever its content type is, because many clients send a content type with every request. Throws
 * `VALIDATION_ERROR` for other bodies.
 */
export async function readLinkdingBody(bodies: Bodies, request: FastifyRequest): Promise<unknown> {
  if (request.bodyReader === undefined) return undefined;
  const type = request.headers['content-type'] ?? '';
  const isForm = FORM_TYPE.test(type);
  const bytes = await bodies.readWhole(request, isForm ? DEFAULT_BODY_BYTES : BOOKMARK_BODY_BYTES);
  if (bytes.length === 0) return undefined;
  if (isForm) return readForm(bytes, type);
  if (!JSON_TYPE.test(type)) throw invalid('Content-Type: expected application/json');
  return parseShortJson(bytes);
}

/** Reads a form, in which line breaks are CRLF. `tag_names` may be sent several times, also as `tag_names[]` or `tag_names[0]`. */
async function readForm(bytes: Buffer, type: string): Promise<unknown> {
  const response = new Response(new Uint8Array(bytes), { headers: { 'content-type': type } });
  const form = await response.formData().catch(() => {
    throw invalid('body: is not a valid form');
  });
  const fields = new Map<string, unknown>();
  const names: string[] = [];
  for (const [field, value] of form) {
    if (typeof value !== 'string') throw invalid(`${field}: files are not accepted`);
    if (LIST_NAME.test(field)) names.push(value);
    else fields.set(field, value.replaceAll('\r\n', '\n'));
  }
  if (names.length > 0) fields.set('tag_names', names);
  return Object.fromEntries(fields);
}
