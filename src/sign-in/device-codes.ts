import { randomBytes } from 'node:crypto';
import type { PendingValues } from '../coordination/port.ts';
import type { Principal } from '../domain/tokens.ts';
import { hashParts } from './pkce.ts';

/** Codes by which a signed-in page signs in another device: for five minutes, once, and one of a session at a time. */

/** A session: its user, and the hash of its token. */
type Maker = Pick<Principal, 'userId' | 'hash'>;

/** 32 characters that nobody confuses, so a byte chooses each with the same probability. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** 60 random bits. Invite codes have 8 characters, which tells the two apart. */
const LENGTH = 12;

/** Whether a code is one of another device, by its length. */
export const isDeviceCode = (code: string): boolean => code.length === LENGTH;

const nameCode = (code: string): string => hashParts('device', code);
const nameSession = ({ userId, hash }: Maker): string =>
  hashParts('device-session', String(userId), hash.toString('hex'));

/** Makes the code of a session. The session's code before it ends. */
export async function issueDeviceCode(pending: PendingValues, maker: Maker): Promise<string> {
  await cancelDeviceCode(pending, maker);
  const code = Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
  const grant = { userId: maker.userId, session: maker.hash.toString('hex') };
  await pending.keep('deviceCodes', nameCode(code), JSON.stringify(grant));
  await pending.keep('deviceSessions', nameSession(maker), nameCode(code));
  return code;
}

/** Ends the code of a session, where it has one. */
export async function cancelDeviceCode(pending: PendingValues, maker: Maker): Promise<void> {
  const name = await pending.take('deviceSessions', nameSession(maker));
  if (name !== undefined) await pending.take('deviceCodes', name);
}

/** The session that made a code, to the first who brings the code. */
export async function takeDeviceCode(pending: PendingValues, code: string): Promise<Maker | undefined> {
  const text = await pending.take('deviceCodes', nameCode(code));
  if (text === undefined) return undefined;
  const { userId, session } = JSON.parse(text) as { userId: number; session: string };
  return { userId, hash: Buffer.from(session, 'hex') };
}

/**
 * Whether a code that was taken still counts. Ask after the session is open: `cancelDeviceCode`, followed by ending sessions,
 * then either makes this false or ends the open session.
 */
export const confirmDeviceCode = async (
  pending: PendingValues,
  code: string,
  maker: Maker,
): Promise<boolean> => (await pending.take('deviceSessions', nameSession(maker))) === nameCode(code);
