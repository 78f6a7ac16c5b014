import { readFileSync } from 'node:fs';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';

/** Where and how to connect, as the driver takes it. */
export interface Target {
  url: string;
  ssl?: ConnectionOptions;
  /** A Unix socket. */
  path?: string;
}

/**
 * What libpq and other clients read from a url and Postgres does not know. The driver would send them on as settings
 * of the session, and Postgres would refuse the connection: providers' urls carry `channel_binding`, for one.
 */
const foreign = [
  'channel_binding',
  'connection_limit',
  'fallback_application_name',
  'gssencmode',
  'keepalives',
  'keepalives_count',
  'keepalives_idle',
  'keepalives_interval',
  'load_balance_hosts',
  'pgbouncer',
  'pool_timeout',
  'schema',
  'sslcert',
  'sslcompression',
  'sslcrl',
  'sslkey',
  'sslrootcert',
  'tcp_user_timeout',
];

/**
 * Reads a url as libpq does: `sslmode` with `sslrootcert`, `sslcert` and `sslkey` (files), `host=/folder` of a Unix
 * socket, several hosts. Throws where a named file cannot be read.
 */
export function parseDatabaseUrl(text: string): Target {
  const [address = '', query = ''] = text.split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  const ssl = readTls(parameters, hostsOf(address));
  const path = readSocketPath(parameters);
  for (const name of foreign) parameters.delete(name);
  if (ssl) parameters.delete('sslmode');
  // With a socket's path the url's host is empty, which the driver does not take.
  const named = path ? address.replace(/^(\w+:\/\/(?:[^/]*@)?)(?=\/|$)/, '$1localhost') : address;
  const url = parameters.size > 0 ? `${named}?${parameters}` : named;
  return { url, ...(ssl && { ssl }), ...(path && { path }) };
}

/** Why a url cannot be used, in words that hold nothing secret of it; undefined where the driver can take it. */
export function findUrlFault(text: string): string | undefined {
  try {
    const address = decodeURIComponent(parseDatabaseUrl(text).url);
    // Of several hosts the driver parses the first.
    new URL(address.replace(/(^\w+:\/\/(?:[^/]*@)?[^/,@]*)(,[^/?@]*)(?=[/?]|$)/, '$1'));
    return undefined;
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    return path === undefined
      ? 'expected a url that can be parsed'
      : `expected ${path} to be readable (${code})`;
  }
}

function hostsOf(address: string): string[] {
  const authority = address.replace(/^\w+:\/\//, '').split('/')[0]!;
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .split(',')
    .map((host) => host.replace(/:\d*$/, '').replace(/^\[|\]$/g, ''));
}

function readSocketPath(parameters: URLSearchParams): string | undefined {
  const host = parameters.get('host');
  if (!host?.startsWith('/')) return undefined;
  const port = parameters.get('port') ?? '5432';
  parameters.delete('host');
  parameters.delete('port');
  return `${host}/.s.PGSQL.${port}`;
}

/** TLS settings beyond the driver's own; undefined where its own handling of `sslmode` will do. */
function readTls(parameters: URLSearchParams, hosts: string[]): ConnectionOptions | undefined {
  const file = (name: string) => {
    const path = parameters.get(name);
    return path && path !== 'system' ? readFileSync(path, 'utf8') : undefined;
  };
  const mode = parameters.get('sslmode');
  const [ca, cert, key] = [file('sslrootcert'), file('sslcert'), file('sslkey')];
  const isFull = mode === 'verify-full' || parameters.get('sslrootcert') === 'system';
  if (mode === 'disable' || !(isFull || mode === 'verify-ca' || ca || cert)) return undefined;
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    // As libpq: `require` with a root certificate verifies the chain.
    rejectUnauthorized: isFull || mode === 'verify-ca' || ca !== undefined,
    // The driver names no server to TLS where the host is an address, and Node would then check for "localhost".
    checkServerIdentity: (name, certificate) => {
      if (!isFull) return undefined;
      const errors = (hosts.includes(name) ? [name] : hosts).map((host) =>
        checkServerIdentity(host, certificate),
      );
      return errors.includes(undefined) ? undefined : errors[0];
    },
  };
}
