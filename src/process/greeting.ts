import { issueInvite } from '../admin/invites.ts';
import type { Context } from '../context.ts';

const EMAIL = 'you@localhost';

/**
 * Prints how to start: the API's address, an invite, and a link to the page. The link signs in once. Its code is in
 * the URL's fragment, which browsers do not send. The page asks before it uses the code, except on the same machine.
 */
export async function greet(context: Context, origin: string): Promise<void> {
  const invite = await issueInvite(context.database, EMAIL, 7);
  const link = await issueInvite(context.database, EMAIL, 1);
  const lines = [
    '',
    `The API: ${origin}/api/v1 (reference: ${origin}/docs)`,
    `Invite code: ${invite.code}`,
    'Your bookmarks (this link signs you in once):',
    `${context.site.namedOrigin ?? context.site.origin ?? origin}/#code=${link.code}`,
    '',
  ];
  console.log(lines.join('\n'));
}
