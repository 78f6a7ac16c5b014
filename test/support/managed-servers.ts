import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PROGRAM_ENVIRONMENT } from '../../src/embedded/binaries.ts';
import { startServer } from '../../src/embedded/server.ts';
import { chooseServerAccount, giveFolder } from '../../src/embedded/server-account.ts';
import { makeFolder } from './folders.ts';
import { findFreePort } from './ports.ts';
import { noteProcess } from './processes.ts';
import { provide } from './programs.ts';
import { startRedis } from './redis.ts';
import { runDir } from './run.ts';

/** Starts a Postgres and a Redis that require TLS and passwords, and have an administrator, as a provider's do. */

const TLS = join(import.meta.dirname, 'tls');

/** The certificate authority of both servers. Their certificate is for `localhost` and 127.0.0.1. */
export const CA_FILE = join(TLS, 'certificate.pem');

const CERTIFICATE = readFileSync(CA_FILE, 'utf8');
const PRIVATE_KEY = readFileSync(join(TLS, 'key.pem'), 'utf8');

/** A provider's Postgres server. */
export interface ManagedPostgres extends AsyncDisposable {
  readonly port: number;
  /** Returns a direct url for the server's administrator. */
  urlOfAdmin(database?: string): string;
  /** Returns a direct url for another role, for use on the operator's machine. */
  urlOf(role: string, password: string, database: string): string;
}

const ADMIN_PASSWORD = 'ofTheProvider';

/** Starts this system's PostgreSQL. Each connection must use TLS and a password. */
export async function startManagedPostgres(): Promise<ManagedPostgres> {
  const postgres = await provide('postgresql');
  const programs = dirname(postgres);
  const folder = makeFolder('managed', runDir());
  const file = (name: string) => join(folder, name);
  writeFileSync(file('password'), ADMIN_PASSWORD);
  writeFileSync(file('server.crt'), CERTIFICATE);
  writeFileSync(file('server.key'), PRIVATE_KEY);
  const account = chooseServerAccount(file('none'));
  giveFolder(account, folder);
  for (const path of [folder, file('server.key')]) chmodSync(path, path === folder ? 0o700 : 0o600);
  const pgdata = file('data');
  const cluster = ['-D', pgdata, '--username=postgres', '--auth=scram-sha-256', '--no-sync'];
  const options = { env: PROGRAM_ENVIRONMENT, cwd: '/', ...account };
  await promisify(execFile)(join(programs, 'initdb'), [...cluster, `--pwfile=${file('password')}`], options);
  writeFileSync(join(pgdata, 'pg_hba.conf'), 'hostssl all all 127.0.0.1/32 scram-sha-256\n');
  const server = await startServer({
    pgdata,
    logFile: file('server.log'),
    postgres,
    account,
    settings: {
      // The data does not have to survive a power failure of this machine.
      fsync: 'off',
      ssl: 'on',
      ssl_cert_file: file('server.crt'),
      ssl_key_file: file('server.key'),
      password_encryption: 'scram-sha-256',
    },
  });
  noteProcess(runDir(), server.pid);
  const urlOf = (role: string, password: string, database: string) =>
    `postgres://${role}:${password}@localhost:${server.port}/${database}?sslmode=verify-full&sslrootcert=${CA_FILE}`;
  return {
    port: server.port,
    urlOf,
    urlOfAdmin: (database = 'postgres') => urlOf('postgres', ADMIN_PASSWORD, database),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/**
 * Returns the url in a form for the plain driver, which cannot read a certificate file. With this url, the driver does
 * not check the server's certificate.
 */
export const withoutVerification = (url: string): string => url.replace(/\?.*/, '?sslmode=require');

/** A provider's Redis server. */
export interface ManagedRedis extends AsyncDisposable {
  readonly port: number;
  /** The url for the server's administrator. */
  readonly adminUrl: string;
}

/** Starts a Redis that accepts only TLS. It has an administrator, and stores its users in a file. */
export async function startManagedRedis(): Promise<ManagedRedis> {
  const port = await findFreePort();
  const tls = ['cert', 'key', 'ca-cert'].map((name) => [
    `--tls-${name}-file`,
    name === 'key' ? 'key.pem' : 'certificate.pem',
  ]);
  const server = await startRedis({
    port: 0,
    args: [
      '--tls-port',
      String(port),
      '--tls-auth-clients',
      'no',
      ...tls.flat(),
      '--aclfile',
      'users.acl',
      '--maxmemory-policy',
      'noeviction',
    ],
    files: {
      'certificate.pem': CERTIFICATE,
      'key.pem': PRIVATE_KEY,
      'users.acl': `user default on >${ADMIN_PASSWORD} ~* &* +@all\n`,
    },
  });
  return {
    port,
    adminUrl: `rediss://default:${ADMIN_PASSWORD}@localhost:${port}`,
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
