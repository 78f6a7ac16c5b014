import type { Command } from 'commander';
import { ApiError } from '../../client/index.ts';
import { askLine } from '../ask.ts';
import { loginByBrowser } from '../browser-login.ts';
import { readCredentials, removeCredentials, storeCredentials } from '../credentials.ts';
import { CliError } from '../faults.ts';
import { findBaseUrl, openClient, openOwnClient, type Run, type Session } from '../session.ts';

/**
 * Matches a code in upper case and without hyphens: an invite code, or the longer code that signs in another device.
 */
const CODE = /^[A-Z0-9]{8}([A-Z0-9]{4})?$/;
/** Matches a session's token (`bks_`) or an API token (`bka_`). */
const TOKEN = /^bk[as]_\d+_[\w-]+$/;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Adds the commands `login`, `logout` and `whoami`. */
export function addAccountCommands(program: Command, run: Run): void {
  program
    .command('login')
    .description('log in through the browser, or with a code or token')
    .argument(
      '[code-or-token]',
      'if omitted: the browser opens on a terminal, otherwise it is read from standard input',
    )
    .option('--paste', 'prompt for an API token from the settings, without showing it')
    .option('--email <address>', 'the address that the invite was sent to')
    .action(run(login));
  program
    .command('logout')
    .description('end the session, or forget the stored API token')
    .option('--local', 'delete only the stored token; the token stays valid')
    .option('--revoke', 'revoke the stored token too if it is an API token')
    .action(run(logout));
  program.command('whoami').description('show who is logged in').action(run(whoami));
}

async function login(
  session: Session,
  codeOrToken: string | undefined,
  { email: invitedEmail, paste = false }: { email?: string; paste?: boolean },
): Promise<void> {
  const { terminal, environment, signal } = session;
  // The login replaces the stored credentials, so damaged ones are ignored.
  const stored = await readCredentials(environment.configDir).catch(() => undefined);
  const baseUrl = findBaseUrl(session, stored);
  warnOfPlainHttp(session, baseUrl);
  const client = openClient(session, baseUrl);
  const hasNoArguments = codeOrToken === undefined && invitedEmail === undefined && !paste;
  const usesBrowser = hasNoArguments && terminal.streams.stdin.isTTY === true;
  const token = usesBrowser
    ? await loginByBrowser(session, client, baseUrl)
    : await exchange(session, client, await readSecret(session, codeOrToken, paste), invitedEmail);
  const { email } = await client.withToken(token).profile({ signal });
  await storeCredentials(environment.configDir, { base_url: baseUrl, token, email });
  await terminal.print({ email, base_url: baseUrl }, () => `Logged in as ${email} at ${baseUrl}`);
}

/** Returns the code or token in the command. If there is neither, asks for one. */
function readSecret(session: Session, codeOrToken: string | undefined, paste: boolean): Promise<string> {
  if (paste) return pasteToken(session, codeOrToken);
  return codeOrToken === undefined ? askSecret(session) : Promise.resolve(codeOrToken);
}

/** Asks for a code or a token without showing it. */
async function askSecret(session: Session): Promise<string> {
  const secret = await askLine(session, 'Code or token: ', { secret: true });
  if (!secret) throw new CliError('no code or token was given');
  return secret;
}

/**
 * Asks for an API token without showing it. Throws if the command contains a token, because other users of the computer
 * can read the arguments of running commands.
 */
async function pasteToken(session: Session, tokenInCommand: string | undefined): Promise<string> {
  if (tokenInCommand !== undefined)
    throw new CliError('--paste prompts for the token; leave the token out of the command');
  const token = await askLine(session, 'API token: ', { secret: true });
  if (token?.startsWith('bka_') && TOKEN.test(token)) return token;
  throw new CliError('this is not an API token', 'API tokens begin with bka_; create one in the settings.');
}

/** Exchanges a code for a token. If `secret` is a token already, returns it unchanged. */
async function exchange(
  { signal }: Session,
  client: ReturnType<typeof openClient>,
  secret: string,
  email: string | undefined,
): Promise<string> {
  if (TOKEN.test(secret)) return secret;
  const code = secret.toUpperCase().replaceAll('-', '');
  if (!CODE.test(code)) {
    throw new CliError(
      'this is neither a code nor a token',
      'Invite codes have 8 letters and digits, codes from another device have 12, and tokens begin with bks_ or bka_',
    );
  }
  try {
    const isInvite = code.length === 8;
    const options = { signal, email };
    const opened = isInvite
      ? await client.exchangeInvite(code, options)
      : await client.exchangeDeviceCode(code, options);
    return opened.token;
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'NOT_FOUND')) throw error;
    throw new CliError(
      'this code is unknown, expired or already used',
      'An invite code works once and expires after some days; ask for a new one. A code from another device works for five minutes.',
    );
  }
}

function warnOfPlainHttp({ terminal }: Session, baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl);
  if (protocol === 'https:' || LOOPBACK.test(hostname)) return;
  terminal.note(`Warning: ${baseUrl} is not encrypted; others on the network can read your token.`);
}

async function logout(
  session: Session,
  { local = false, revoke = false }: { local?: boolean; revoke?: boolean },
): Promise<void> {
  if (local && revoke) throw new CliError('--revoke cannot be combined with --local');
  const { terminal, environment, signal } = session;
  const stored = await readCredentials(environment.configDir);
  if (stored === undefined) throw new CliError('you are not logged in', undefined, 'INVALID_TOKEN');
  const isSession = stored.token.startsWith('bks_');
  const revokes = revoke || (isSession && !local);
  if (revokes) {
    const client = openClient(session, stored.base_url, stored.token);
    await client.logout({ signal }).catch((error) => {
      // `INVALID_TOKEN` means that the token is no longer valid.
      if (error instanceof ApiError && error.code === 'INVALID_TOKEN') return;
      // The status is 0 if there was no response.
      if (error instanceof ApiError && error.status === 0) {
        throw new CliError(
          `${stored.base_url} cannot be reached, so the token was not revoked`,
          'Try again later, or delete only the stored token: bookmarks logout --local',
          'UNAVAILABLE',
        );
      }
      throw error;
    });
  }
  await removeCredentials(environment.configDir);
  await terminal.print({ logged_out: true, revoked: revokes }, () =>
    revokes ? 'Logged out' : 'Deleted the stored token; it stays valid until it is revoked or expires',
  );
}

async function whoami(session: Session): Promise<void> {
  const client = await openOwnClient(session);
  const account = await client.account({ signal: session.signal });
  await session.terminal.print({ ...account, base_url: session.baseUrl }, () => {
    const tier = account.is_premium ? 'premium' : 'free tier';
    const limit = account.bookmark_limit === null ? '' : ` of ${account.bookmark_limit}`;
    const expiryDate = account.token_expires_at?.slice(0, 10);
    return [
      `${account.email} (${tier}) at ${session.baseUrl}`,
      `${account.bookmark_count}${limit} bookmarks`,
      `token: ${account.scope}${expiryDate === undefined ? '' : `, expires ${expiryDate}`}`,
    ].join('\n');
  });
}
