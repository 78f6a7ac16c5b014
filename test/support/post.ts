import { BASE_PATH } from '../../src/http/mount.ts';
import { type ApiResponse, checkResponse, readResponse } from './responses.ts';

/** The parts of a request except its path and its body. `token` becomes the `Authorization` header. */
export type RequestOptions = RequestInit & { token?: string };

/**
 * Sends a request to a service. `path` is appended to `/api/v1`. Texts and bytes are sent unchanged, and anything else
 * as JSON. Rejects if the response breaks a rule for all responses (`checkResponse`).
 */
export async function post(
  origin: string,
  path: string,
  body: unknown = {},
  { token, ...options }: RequestOptions = {},
): Promise<ApiResponse> {
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const sent = await fetch(`${origin}${BASE_PATH}${path}`, {
    method: 'POST',
    body: isRaw ? (body as BodyInit) : JSON.stringify(body),
    ...options,
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(options.headers as Record<string, string>),
    },
  });
  const response = await readResponse(sent);
  checkResponse(path, response);
  return response;
}
