import { issueInvite } from '../admin/invites.ts';
import type { Context } from '../context.ts';

const EMAIL = 'you@localhost';

/**
 * Prints for a newcomer where to begin: the address, an invite, and last a link to the page. The link signs in once: its
 * code is in the part that no browser sends, and the page takes it by itself on the own machine only.
 */
export async function greet(context: Context, origin: string): Promise<void> {
  const invite = await issueInvite(context.database, EMAIL, 7);
  const link = await issueInvite(context.database, EMAIL, 1);
  const lines = [
    '',
    `The API: ${origin}/api/v1 (reference: ${origin}/docs)`,
    `Invite code: ${invite.code}`,
    'Your bookmarks (this link signs you in, once):',
    `${context.site.namedOrigin ?? context.site.origin ?? origin}/#code=${link.code}`,
    '',
  ];
  console.log(lines.join('\n'));
}
