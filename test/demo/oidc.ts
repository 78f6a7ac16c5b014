import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CLIENT_ID, CLIENT_SECRET, startProvider } from '../support/provider.ts';

// `npm run demo:oidc` runs the service and an OpenID provider, so that people can try signing in. Ctrl-C ends both.

const PEOPLE = ['ann@example.org', 'bob@example.org'];

await using provider = await startProvider();
for (const email of PEOPLE) provider.people.set(email.split('@')[0]!, { email, email_verified: true });

const port = process.env.PORT ?? '3000';
const service = spawn(process.execPath, ['src/main.ts'], {
  stdio: 'inherit',
  env: {
    ...process.env,
    PORT: port,
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: CLIENT_ID,
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    OIDC_NAME: 'Demo Accounts',
    OIDC_TRUST_EMAIL: 'true',
    SIGN_UP: 'open',
  },
});
console.log(
  `Once the service listens, open http://127.0.0.1:${port}/login and choose ${PEOPLE.join(' or ')}.`,
);
// Ctrl-C sends SIGINT to the service too. This process ignores SIGINT and ends after the service has ended.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => service.kill('SIGTERM'));
const [code] = await once(service, 'exit');
process.exitCode = code ?? 1;
