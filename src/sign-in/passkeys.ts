import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { PendingValues } from '../coordination/port.ts';
import type { Principal } from '../domain/tokens.ts';
import { hashParts } from './pkce.ts';

/** Passkeys (WebAuthn): challenges that are used once, and what browsers answer to them. Stored passkeys are `store/passkeys.ts`. */

/** Where a passkey belongs to: it answers pages of this origin only, and is kept under this host. */
export interface RelyingParty {
  origin: string;
  rpId: string;
}

type Session = Pick<Principal, 'userId' | 'hash'>;

/** Ed25519, ES256 and RS256. Without a list the library tries experimental algorithms, and Node warns. */
const ALGORITHMS = [-8, -7, -257];

/** Loaded when it is needed: see `docs/decisions/0145-passkeys.md`. */
const loadLibrary = () => import('@simplewebauthn/server');

/** The host of a page's origin; undefined for an IP address, which no passkey can belong to. */
export function findRelyingParty(origin: string | undefined): RelyingParty | undefined {
  if (origin === undefined || !URL.canParse(origin)) return undefined;
  const { hostname } = new URL(origin);
  return /^\[|^[\d.]+$/.test(hostname) ? undefined : { origin, rpId: hostname };
}

const nameSignIn = (challenge: string): string => hashParts('passkey', challenge);
const nameAddition = ({ userId, hash }: Session, challenge: string): string =>
  hashParts('passkey-addition', String(userId), hash.toString('hex'), challenge);

/** What a browser asks authenticators with, to sign in. It names no account. */
export async function offerSignIn(pending: PendingValues, { rpId }: RelyingParty, timeout: number) {
  const { generateAuthenticationOptions } = await loadLibrary();
  const options = await generateAuthenticationOptions({ rpID: rpId, userVerification: 'required', timeout });
  await pending.keep('passkeySignIns', nameSignIn(options.challenge), '1');
  return options;
}

/** What a browser makes a passkey with, for the account of a session. */
export async function offerAddition(
  pending: PendingValues,
  session: Session,
  { rpId }: RelyingParty,
  { email, credentialIds, timeout }: { email: string; credentialIds: readonly string[]; timeout: number },
) {
  const { generateRegistrationOptions } = await loadLibrary();
  const options = await generateRegistrationOptions({
    rpName: 'Bookmarks',
    supportedAlgorithmIDs: ALGORITHMS,
    rpID: rpId,
    userID: Uint8Array.from(Buffer.from(String(session.userId))),
    userName: email,
    userDisplayName: email,
    timeout,
    excludeCredentials: credentialIds.map((id) => ({ id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  await pending.keep('passkeyAdditions', nameAddition(session, options.challenge), '1');
  return options;
}

/** The challenge that a browser says it answers; undefined for anything else. */
function readChallenge(clientData: string): string | undefined {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientData, 'base64url').toString()) as Record<
      string,
      unknown
    >;
    return typeof challenge === 'string' ? challenge : undefined;
  } catch {
    return undefined;
  }
}

/** The user that an authenticator names, as `offerAddition` gave it; undefined for anything else. */
export function readUserHandle(userHandle: string): number | undefined {
  const text = Buffer.from(userHandle, 'base64url').toString();
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

/** An answer to `offerSignIn`, as the page sends it. Every field is base64url. */
interface SignInAnswer {
  credential_id: string;
  client_data: string;
  authenticator_data: string;
  signature: string;
  user_handle: string;
}

/** Uses up the challenge of an answer; the challenge, or undefined where none is waiting for an answer. */
export async function takeSignIn(pending: PendingValues, answer: SignInAnswer): Promise<string | undefined> {
  const challenge = readChallenge(answer.client_data);
  if (challenge === undefined) return undefined;
  return (await pending.take('passkeySignIns', nameSignIn(challenge))) && challenge;
}

/** The authenticator's new counter; undefined where an answer is not that of this passkey to this challenge. */
export async function verifySignIn(
  answer: SignInAnswer,
  challenge: string,
  { origin, rpId }: RelyingParty,
  { publicKey, counter }: { publicKey: Uint8Array<ArrayBuffer>; counter: number },
): Promise<number | undefined> {
  const { verifyAuthenticationResponse } = await loadLibrary();
  const response: AuthenticationResponseJSON = {
    ...named(answer.credential_id),
    response: {
      clientDataJSON: answer.client_data,
      authenticatorData: answer.authenticator_data,
      signature: answer.signature,
      userHandle: answer.user_handle,
    },
  };
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      credential: { id: answer.credential_id, publicKey, counter },
    });
    return verified ? authenticationInfo.newCounter : undefined;
  } catch {
    // The library throws for whatever is wrong, also for bytes that it cannot read.
    return undefined;
  }
}

/** An answer to `offerAddition`, as the page sends it. Every field is base64url. */
interface AdditionAnswer {
  credential_id: string;
  client_data: string;
  attestation: string;
}

/** The new passkey of a session's user; undefined where an answer is none to a challenge of this session. */
export async function verifyAddition(
  pending: PendingValues,
  session: Session,
  answer: AdditionAnswer,
  { origin, rpId }: RelyingParty,
) {
  const challenge = readChallenge(answer.client_data);
  if (challenge === undefined) return undefined;
  if ((await pending.take('passkeyAdditions', nameAddition(session, challenge))) === undefined)
    return undefined;
  const { verifyRegistrationResponse } = await loadLibrary();
  const response: RegistrationResponseJSON = {
    ...named(answer.credential_id),
    response: { clientDataJSON: answer.client_data, attestationObject: answer.attestation },
  };
  try {
    if (!(await isUnattested(answer.attestation))) return undefined;
    const { registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    return (
      registrationInfo && { ...registrationInfo.credential, credentialId: registrationInfo.credential.id }
    );
  } catch {
    return undefined;
  }
}

/**
 * Whether no certificates come with a passkey. The library would ask the address that a certificate names whether it is
 * revoked, and the service sends no requests to addresses that clients choose.
 */
async function isUnattested(attestation: string): Promise<boolean> {
  const { decodeAttestationObject, isoBase64URL } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(isoBase64URL.toBuffer(attestation));
  const format = decoded.get('fmt');
  return format === 'none' || (format === 'packed' && decoded.get('attStmt').get('x5c') === undefined);
}

const named = (id: string) => ({ id, rawId: id, type: 'public-key' as const, clientExtensionResults: {} });
