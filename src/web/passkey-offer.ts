import { moreTexts } from './more-texts.ts';
import { notify, notifyBriefly, notifyError } from './notices.ts';
import { addPasskey, describePasskeyFailure } from './passkeys.ts';
import { post } from './post.ts';

const KEY = 'passkey-offered';

/** Offers a passkey to a user who has neither a linked provider nor a passkey. Asks once per browser. */
export async function offerPasskey(): Promise<void> {
  if (localStorage.getItem(KEY) !== null) return;
  const ways = await post<{ provider: boolean; passkeys: number }>('/web/login/ways', {});
  localStorage.setItem(KEY, 'yes');
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
