import { nameClient } from '../domain/client-name.ts';
import { askForText } from './ask-dialog.ts';
import { moreTexts } from './more-texts.ts';
import { notify, notifyBriefly, notifyError } from './notices.ts';
import { describeFailure, hasPasskeys, hasStatus, post } from './post.ts';

/** Signs in with passkeys and creates them, through the browser's WebAuthn. */

/** Signs in with a passkey that the user chooses. Returns false if they choose none. */
export async function signInByPasskey(): Promise<boolean> {
  const options = await post<PublicKeyCredentialRequestOptionsJSON>('/web/login/passkey/options', {});
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const credential = await choose(() => navigator.credentials.get({ publicKey }));
  if (credential === undefined) return false;
  const { id, response } = credential.toJSON();
  if (!('signature' in response)) throw new TypeError('the browser returned no signature');
  await post('/web/login/passkey', {
    credential_id: id,
    client_data: response.clientDataJSON,
    authenticator_data: response.authenticatorData,
    signature: response.signature,
    user_handle: response.userHandle,
  });
  return true;
}

/** Asks for a name, and creates a passkey for the account. Returns false if the user cancels the question. */
export async function addPasskey(): Promise<boolean> {
  const words = moreTexts.passkeys;
  const suggested = nameClient(navigator.userAgent) ?? '';
  const name = await askForText(words.add, words.name, words.add, suggested);
  if (name === undefined) return false;
  const options = await post<PublicKeyCredentialCreationOptionsJSON>('/web/login/passkey/new', {});
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const credential = await navigator.credentials.create({ publicKey });
  if (!(credential instanceof PublicKeyCredential)) throw new TypeError('the browser returned no passkey');
  const { id, response } = credential.toJSON();
  if (!('attestationObject' in response)) throw new TypeError('the browser returned no attestation');
  await post('/web/login/passkey/add', {
    credential_id: id,
    client_data: response.clientDataJSON,
    attestation: response.attestationObject,
    ...(name !== '' && { name }),
  });
  return true;
}

/** Returns the credential from the browser's dialog. Returns undefined if the user cancels or if no passkey fits. */
async function choose(ask: () => Promise<Credential | null>): Promise<PublicKeyCredential | undefined> {
  try {
    const credential = await ask();
    return credential instanceof PublicKeyCredential ? credential : undefined;
  } catch (error) {
    if (error instanceof DOMException && ['NotAllowedError', 'AbortError'].includes(error.name))
      return undefined;
    throw error;
  }
}

/** Describes to the user why a request about passkeys failed. */
export function describePasskeyFailure(error: unknown): string {
  // The errors of the browser (WebAuthn, sections 5.1.3 and 6.3.2).
  if (error instanceof DOMException) {
    const { reasons } = moreTexts.passkeys;
    return Object.hasOwn(reasons, error.name) ? reasons[error.name as keyof typeof reasons] : reasons.other;
  }
  if (hasStatus(error, 400)) return moreTexts.passkeys.refused;
  if (hasStatus(error, 403)) return moreTexts.passkeys.sessionOld;
  if (hasStatus(error, 409)) return moreTexts.passkeys.lastOne;
  return describeFailure(error);
}

const OFFERED = 'passkey-offered';

/** Offers to add a passkey to a user who has neither a linked provider nor a passkey. Asks once per browser. */
export async function offerPasskey(): Promise<void> {
  if (!hasPasskeys() || localStorage.getItem(OFFERED) !== null) return;
  const ways = await post<{ provider: boolean; passkeys: number }>('/web/login/ways', {});
  localStorage.setItem(OFFERED, 'yes');
  if (ways.provider || ways.passkeys > 0) return;
  const words = moreTexts.passkeys;
  const add = async () => {
    removeOffer();
    try {
      if (await addPasskey()) notifyBriefly(words.added);
    } catch (error) {
      notifyError(describePasskeyFailure(error));
    }
  };
  const removeOffer = notify(words.offer, {
    action: { text: words.add, run: () => void add() },
    isClosable: true,
  });
}
