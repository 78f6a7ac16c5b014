import { texts } from './texts.ts';

/** Requests about sessions and passkeys, and whether passkeys can be used. These are not part of the API. */

/** Sends JSON. Rejects with the response if its status is not a success. */
export async function post<Body>(path: string, body: object): Promise<Body> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw response;
  return await response.json();
}

/** True if `post` rejected with a response that has one of these statuses. */
export const hasStatus = (error: unknown, ...statuses: number[]): boolean =>
  error instanceof Response && statuses.includes(error.status);

/** Describes to the user why `post` rejected. If there was no response, the text says that the connection failed. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Response)) return texts.errors.lost;
  if (hasStatus(error, 401)) return texts.signInNeeded;
  return hasStatus(error, 429) ? texts.errors.limited : texts.errors.unavailable;
}

/** True if passkeys can belong to the page's host. They cannot belong to an IP address. */
export const addressHasPasskeys = (): boolean => !/^\[|^[\d.]+$/.test(location.hostname);

/** True if this browser and this address support passkeys. */
export const hasPasskeys = (): boolean =>
  addressHasPasskeys() &&
  'PublicKeyCredential' in window &&
  'parseRequestOptionsFromJSON' in PublicKeyCredential;
