import { issueInvite } from '../admin/invites.ts';
import type { Context } from '../context.ts';

const EMAIL = 'you@localhost';

/**
 * Prints for a newcomer how to begin: a link to the page, the base URL, an invite and the first requests. The link signs
 * in once: its code is in the part that no browser sends, and the page takes it by itself on the own machine only.
 */
export async function greet(context: Context, origin: string): Promise<void> {
  const { code } = await issueInvite(context.database, EMAIL, 7);
  const link = await issueInvite(context.database, EMAIL, 1);
  const base = `${origin}/api/v1`;
  const post = (path: string, body: string, auth = true) =>
    `curl -s ${base}${path} -H 'content-type: application/json'${auth ? ' -H "authorization: Bearer $TOKEN"' : ''} -d '${body}'`;
  console.log(`
Your bookmarks are at ${context.site.origin ?? origin}/#code=${link.code}
(the link signs you in, once).

The Bookmark Service answers at ${base} (reference: ${origin}/docs).
invite code: ${code}

Exchange it for a session token, then put that into TOKEN:
  ${post('/auth/invite', `{"code":"${code}"}`, false)}
  TOKEN=...
Add, search, and sync (the last waits for what is new):
  ${post('/bookmarks/add', '{"url":"https://example.org/","title":"An example","tags":["first"]}')}
  ${post('/bookmarks/search', '{"query":"example"}')}
  ${post('/bookmarks/sync', '{"cursor":0,"wait":true}')}
`);
}
