import { z } from 'zod';
import type { Session } from '../domain/resources.ts';
import type { PrincipalRoute, PublicRoute } from '../http/route.ts';
import { setSessionCookie } from '../http/session-cookie.ts';
import { exchange, logout, user } from './account.ts';

/** Logging in and out in a browser. The session token is in a cookie that scripts cannot read. */

const loginByInvite: PublicRoute = {
  ...exchange,
  path: '/login/invite',
  summary: 'Exchange an invite code for a session of this browser',
  response: z.object({ user }),
  async handle(given) {
    const { token, user } = (await exchange.handle(given)) as Session;
    setSessionCookie(given.context, given.reply, token);
    return { user };
  },
};

const endBrowserSession: PrincipalRoute = { ...logout, summary: 'End the session of this browser' };

export const webRoutes = [loginByInvite, endBrowserSession];
