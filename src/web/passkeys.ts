import { describeFailure } from './errors.ts';
import { moreTexts } from './more-texts.ts';

/** Passkeys, through the browser's WebAuthn. Loaded when a passkey is used or created. */

/** Signs in with a passkey that the reader chooses. Returns false if they choose none. */
export async function signInByPasskey(): Promise<boolean> {
  const options = await send<PublicKeyCredentialRequestOptionsJSON>('/web/login/passkey/options', {});
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const credential = await choose(() => navigator.credentials.get({ publicKey }));
  if (credential === undefined) return false;
  const { id, response } = credential.toJSON() as AuthenticationResponseJSON;
  await send('/web/login/passkey', {
    credential_id: id,
    client_data: response.clientDataJSON,
    authenticator_data: response.authenticatorData,
    signature: response.signature,
    user_handle: response.userHandle,
  });
  return true;
}

/** Creates a passkey for the account. Returns false if the reader cancels. */
export async function addPasskey(): Promise<boolean> {
  const options = await send<PublicKeyCredentialCreationOptionsJSON>('/web/login/passkey/new', {});
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const credential = await choose(() => navigator.credentials.create({ publicKey }));
  if (credential === undefined) return false;
  const { id, response } = credential.toJSON() as RegistrationResponseJSON;
  await send('/web/login/passkey/add', {
    credential_id: id,
    client_data: response.clientDataJSON,
    attestation: response.attestationObject,
  });
  return true;
}

/** Returns the credential from the browser's dialog. Undefined if the reader cancelled or no credential fits. */
async function choose(ask: () => Promise<Credential | null>): Promise<PublicKeyCredential | undefined> {
  try {
    return ((await ask()) ?? undefined) as PublicKeyCredential | undefined;
  } catch (error) {
    // InvalidStateError: this authenticator already has a passkey for the account.
    if (
      error instanceof DOMException &&
      ['NotAllowedError', 'InvalidStateError', 'AbortError'].includes(error.name)
    )
      return undefined;
    throw error;
  }
}

/** `post` of `session.ts` cannot be used, because that file loads this one to sign in. */
async function send<Body>(path: string, body: object): Promise<Body> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw response;
  return (await response.json()) as Body;
}

/** Describes why a request for passkeys failed. */
export function describePasskeyFailure(error: unknown): string {
  if (error instanceof Response && error.status === 403) return moreTexts.passkeys.sessionOld;
  if (error instanceof Response && error.status === 409) return moreTexts.passkeys.lastOne;
  return describeFailure(error);
}
