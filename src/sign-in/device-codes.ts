import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { PendingValues } from '../coordination/port.ts';
import type { Principal } from '../domain/tokens.ts';
import { hashParts } from './pkce.ts';

/**
 * Codes with which a signed-in page signs in another device. A code works once, within five minutes. A session has at
 * most one code.
 */

/** The session that creates a code: its user, and the hash of its token. */
type Maker = Pick<Principal, 'userId' | 'hash'>;

/** 32 characters that are hard to confuse. 32 divides 256, so a random byte selects all of them equally often. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** The length of a code. Each character has 5 random bits. */
export const DEVICE_CODE_LENGTH = 12;

const nameCode = (code: string): string => hashParts('device', code);
const nameSession = ({ userId, hash }: Maker): string =>
  hashParts('device-session', String(userId), hash.toString('hex'));

/** Creates the code of a session, and cancels the session's previous code. */
export async function issueDeviceCode(pending: PendingValues, maker: Maker): Promise<string> {
  await cancelDeviceCode(pending, maker);
  const code = Array.from(randomBytes(DEVICE_CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join(
    '',
  );
  const grant = { userId: maker.userId, session: maker.hash.toString('hex') };
  await pending.keep('deviceCodes', nameCode(code), JSON.stringify(grant));
  await pending.keep('deviceSessions', nameSession(maker), nameCode(code));
  return code;
}

/** Cancels the code of a session, if it has one. */
export async function cancelDeviceCode(pending: PendingValues, maker: Maker): Promise<void> {
  const codeKey = await pending.take('deviceSessions', nameSession(maker));
  if (codeKey !== undefined) await pending.take('deviceCodes', codeKey);
}

const deviceGrant = z.object({ userId: z.int(), session: z.hex() });

/** Returns the session that created a code, and uses the code up. Undefined if the code is invalid. */
export async function takeDeviceCode(pending: PendingValues, code: string): Promise<Maker | undefined> {
  const text = await pending.take('deviceCodes', nameCode(code));
  if (text === undefined) return undefined;
  const { userId, session } = deviceGrant.parse(JSON.parse(text));
  return { userId, hash: Buffer.from(session, 'hex') };
}

/**
 * Returns false if the code was cancelled after `takeDeviceCode` had used it up, or if the session has created a newer
 * code, which stays valid. Call this function after opening the new session. While that session opens, another request
 * may end all sessions of the user and call `cancelDeviceCode`. In that case, either this function returns false, or
 * the other request ends the new session too.
 */
export const confirmDeviceCode = (pending: PendingValues, code: string, maker: Maker): Promise<boolean> =>
  pending.takeIfEqual('deviceSessions', nameSession(maker), nameCode(code));
