import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { PENDING_KINDS } from '../coordination/pending-kinds.ts';
import type { PendingValues } from '../coordination/port.ts';
import type { Principal } from '../domain/tokens.ts';
import { hashParts } from './pkce.ts';

/**
 * Passkeys (WebAuthn): this file creates challenges and checks the answers of browsers. `store/passkeys.ts` stores the
 * passkeys.
 */

/** The site of a passkey. The passkey works only on pages of `origin`. `rpId` is the host in `origin`. */
export interface RelyingParty {
  origin: string;
  rpId: string;
}

type Session = Pick<Principal, 'userId' | 'hash'>;

/**
 * The numbers of the allowed algorithms: Ed25519, ES256 and RS256. Without this list, the library also tries
 * experimental algorithms, and Node logs warnings.
 */
const ALGORITHMS = [-8, -7, -257];

/** Loads the library on its first use. See docs/decisions/0145-passkeys.md. */
const loadLibrary = () => import('@simplewebauthn/server');

/** Matches the host of a url if the host is an IPv6 or IPv4 address. */
const IP_ADDRESS = /^\[|^[\d.]+$/;

/** Returns the relying party of a page's origin. Undefined for an IP address, because passkeys need a host name. */
export function findRelyingParty(origin: string | undefined): RelyingParty | undefined {
  if (origin === undefined || !URL.canParse(origin)) return undefined;
  const { hostname } = new URL(origin);
  return IP_ADDRESS.test(hostname) ? undefined : { origin, rpId: hostname };
}

const nameSignIn = (challenge: string): string => hashParts('passkey', challenge);
const nameAddition = ({ userId, hash }: Session, challenge: string): string =>
  hashParts('passkey-addition', String(userId), hash.toString('hex'), challenge);

/** Keeps a new challenge, and returns it in the options with which a browser asks for any passkey of this site. */
export async function offerSignIn(pending: PendingValues, { rpId }: RelyingParty) {
  const { generateAuthenticationOptions } = await loadLibrary();
  const options = await generateAuthenticationOptions({
    rpID: rpId,
    userVerification: 'required',
    timeout: PENDING_KINDS.passkeySignIns.lifeMs,
  });
  await pending.keep('passkeySignIns', nameSignIn(options.challenge), '1');
  return options;
}

/**
 * Keeps a new challenge, and returns it in the options with which a browser creates a passkey for a session's account.
 */
export async function offerAddition(
  pending: PendingValues,
  session: Session,
  { rpId }: RelyingParty,
  { email, credentialIds }: { email: string; credentialIds: readonly string[] },
) {
  const { generateRegistrationOptions } = await loadLibrary();
  const options = await generateRegistrationOptions({
    rpName: 'Bookmarks',
    supportedAlgorithmIDs: ALGORITHMS,
    rpID: rpId,
    userID: Uint8Array.from(Buffer.from(String(session.userId))),
    userName: email,
    userDisplayName: email,
    timeout: PENDING_KINDS.passkeyAdditions.lifeMs,
    excludeCredentials: credentialIds.map((id) => ({ id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  await pending.keep('passkeyAdditions', nameAddition(session, options.challenge), '1');
  return options;
}

/** Reads the challenge from a browser's answer. Undefined if the answer is malformed. */
function readChallenge(clientData: string): string | undefined {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientData, 'base64url').toString());
    return typeof challenge === 'string' ? challenge : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the user id that `offerAddition` put into the passkey. Undefined if the text is malformed. */
export function readUserHandle(userHandle: string): number | undefined {
  const text = Buffer.from(userHandle, 'base64url').toString();
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

/** The browser's answer to the options of `offerSignIn`. Every field is base64url. */
interface SignInAnswer {
  credential_id: string;
  client_data: string;
  authenticator_data: string;
  signature: string;
  user_handle: string;
}

/** Uses up and returns the challenge of an answer. Undefined if the challenge is not pending. */
export async function takeSignIn(pending: PendingValues, answer: SignInAnswer): Promise<string | undefined> {
  const challenge = readChallenge(answer.client_data);
  if (challenge === undefined) return undefined;
  const kept = await pending.take('passkeySignIns', nameSignIn(challenge));
  return kept === undefined ? undefined : challenge;
}

/** Returns the new value of the passkey's counter. Undefined unless this passkey has signed this challenge. */
export async function verifySignIn(
  answer: SignInAnswer,
  challenge: string,
  { origin, rpId }: RelyingParty,
  { publicKey, counter }: { publicKey: Uint8Array<ArrayBuffer>; counter: number },
): Promise<number | undefined> {
  const { verifyAuthenticationResponse } = await loadLibrary();
  const response: AuthenticationResponseJSON = {
    ...credentialFields(answer.credential_id),
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
    // The library throws for every invalid answer, even for bytes that it cannot parse.
    return undefined;
  }
}

/** The browser's answer to the options of `offerAddition`. Every field is base64url. */
interface AdditionAnswer {
  credential_id: string;
  client_data: string;
  attestation: string;
}

/** Returns the new passkey, and uses up the answer's challenge. Undefined if the answer is invalid for this session. */
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
    ...credentialFields(answer.credential_id),
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
 * Whether a new passkey comes without certificates. A passkey with certificates is refused, because the library would
 * request the revocation list that a certificate names. The service sends no requests to addresses that clients choose.
 */
async function isUnattested(attestation: string): Promise<boolean> {
  const { decodeAttestationObject, isoBase64URL } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(isoBase64URL.toBuffer(attestation));
  const format = decoded.get('fmt');
  return format === 'none' || (format === 'packed' && decoded.get('attStmt').get('x5c') === undefined);
}

/** Returns the fields that the library expects in the answer to a sign-in and in the answer to an addition. */
const credentialFields = (id: string) => ({
  id,
  rawId: id,
  type: 'public-key' as const,
  clientExtensionResults: {},
});
