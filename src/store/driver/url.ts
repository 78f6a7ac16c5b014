import { readFileSync } from 'node:fs';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import { systemCodeOf } from '../../domain/thrown.ts';

/** The address and options of a connection, in the form that the driver accepts. */
export interface Target {
  url: string;
  ssl?: ConnectionOptions;
  /** The path of a Unix socket. */
  path?: string;
}

/**
 * Parameters that libpq and other clients read from a url, but that Postgres does not know. For example, urls from
 * hosting providers contain `channel_binding`. The driver would send such a parameter as a setting of the session, and
 * Postgres would refuse the connection. So these parameters are removed.
 */
const CLIENT_PARAMETERS = [
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

/** Matches the part of a url before its host, if the host is empty. */
const BEFORE_EMPTY_HOST = /^\w+:\/\/(?:[^/]*@)?(?=\/|$)/;

/** Matches a url with several hosts, up to the end of the hosts. The group ends after the first host and its port. */
const FIRST_AND_FURTHER_HOSTS = /^(?<upToFirst>\w+:\/\/(?:[^/]*@)?[^/,@]*),[^/?@]*(?=[/?]|$)/;

/** Splits a url into the part before its hosts, the hosts, and the part after them. */
const HOSTS = /^(?<before>\w+:\/\/(?:[^/]*@)?)(?<hosts>[^/]*)(?<after>.*)$/s;

/** Matches a url up to the end of its database. The group ends before the hosts. */
const HOSTS_AND_DATABASE = /^(?<upToCredentials>\w+:\/\/(?:[^/?]*@)?)[^/?]*(?:\/[^?]*)?/;

/**
 * Reads a url as libpq does. The url may have several hosts, or `host=/folder` for a Unix socket. It may have
 * `sslmode`, and may name TLS files with `sslrootcert`, `sslcert` and `sslkey`. The function shuffles the hosts if the
 * url has `load_balance_hosts=random` and `inOrder` is false. Throws if a file cannot be read.
 */
export function parseDatabaseUrl(text: string, { inOrder = false } = {}): Target {
  // The group takes everything after the first question mark.
  const [address = '', query = ''] = text.split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  const ssl = readTls(parameters, hostsOf(address));
  const path = takeSocketPath(parameters);
  const isShuffled = wantsRandomOrder(parameters) && !inOrder;
  for (const name of CLIENT_PARAMETERS) parameters.delete(name);
  if (ssl) parameters.delete('sslmode');
  // If a Unix socket is used, the host of the url is empty. The driver does not accept that, so `localhost` is
  // inserted.
  const withHost = path ? address.replace(BEFORE_EMPTY_HOST, '$&localhost') : address;
  const ordered = isShuffled ? shuffleHosts(withHost) : withHost;
  const url = parameters.size > 0 ? `${ordered}?${parameters}` : ordered;
  return { url, ...(ssl && { ssl }), ...(path && { path }) };
}

/**
 * Returns the url of a node. The result is `url` with another address and database, which the template gives as
 * `address:port/database`. In the template, `{host}` and `{port}` stand for the host and port of the node.
 */
export function urlOfNode(
  url: string,
  template: string,
  { host, port }: { host: string; port: number },
): string {
  const place = template
    .replaceAll('{host}', host.includes(':') ? `[${host}]` : host)
    .replaceAll('{port}', String(port));
  return url.replace(HOSTS_AND_DATABASE, (_, upToCredentials) => upToCredentials + place);
}

/** Returns why a url cannot be used, without naming its secrets. Undefined if the driver accepts the url. */
export function findUrlFault(text: string): string | undefined {
  try {
    const address = decodeURIComponent(parseDatabaseUrl(text).url);
    // The driver parses only the first of several hosts, so all further hosts are left out here.
    new URL(address.replace(FIRST_AND_FURTHER_HOSTS, '$<upToFirst>'));
    return undefined;
  } catch (error) {
    // A `RangeError` means that a parameter of the url has an unknown value. The message names the parameter.
    if (error instanceof RangeError) return error.message;
    return error instanceof Error && 'path' in error
      ? `expected ${error.path} to be readable (${systemCodeOf(error)})`
      : 'expected a url that can be parsed';
  }
}

/** Returns whether the url asks for a random order of the hosts. Throws `RangeError` for an unknown value. */
function wantsRandomOrder(parameters: URLSearchParams): boolean {
  const value = parameters.get('load_balance_hosts') ?? 'disable';
  if (!['disable', 'random'].includes(value))
    throw new RangeError('expected load_balance_hosts to be disable or random');
  return value === 'random';
}

/** Shuffles the hosts of a url. The driver begins with the first host, and each further attempt uses the next one. */
function shuffleHosts(address: string): string {
  const { before, hosts, after } = HOSTS.exec(address)?.groups ?? {};
  if (hosts === undefined) return address;
  const order = hosts.split(',').map((host) => ({ host, place: Math.random() }));
  order.sort((a, b) => a.place - b.place);
  return `${before}${order.map(({ host }) => host).join(',')}${after}`;
}

/** Returns the hosts that a url names, without ports and without the brackets of IPv6 addresses. */
export function hostsOf(address: string): string[] {
  const authority = address.replace(/^\w+:\/\//, '').replace(/\/.*/s, '');
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .split(',')
    .map((host) => host.replace(/:\d*$/, '').replace(/^\[|\]$/g, ''));
}

/**
 * Returns the path of the Unix socket, and removes the parameters that name it; undefined if the url names no socket.
 */
function takeSocketPath(parameters: URLSearchParams): string | undefined {
  const host = parameters.get('host');
  if (!host?.startsWith('/')) return undefined;
  const port = parameters.get('port') ?? '5432';
  parameters.delete('host');
  parameters.delete('port');
  return `${host}/.s.PGSQL.${port}`;
}

/**
 * Returns the TLS settings that the driver does not itself derive from `sslmode`; undefined if there are none. Throws
 * if a file cannot be read.
 */
function readTls(parameters: URLSearchParams, hosts: string[]): ConnectionOptions | undefined {
  const readFile = (name: string) => {
    const path = parameters.get(name);
    return path && path !== 'system' ? readFileSync(path, 'utf8') : undefined;
  };
  const mode = parameters.get('sslmode');
  const [ca, cert, key] = [readFile('sslrootcert'), readFile('sslcert'), readFile('sslkey')];
  const verifiesHost = mode === 'verify-full' || parameters.get('sslrootcert') === 'system';
  if (mode === 'disable' || !(verifiesHost || mode === 'verify-ca' || ca || cert)) return undefined;
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    // As in libpq, `require` together with a root certificate verifies the chain of the server's certificate.
    rejectUnauthorized: verifiesHost || mode === 'verify-ca' || ca !== undefined,
    // If the host is an IP address, the driver sends no server name. Node would then check the certificate for
    // "localhost", so this function checks the certificate for the hosts of the url.
    checkServerIdentity: (name, certificate) => {
      if (!verifiesHost) return undefined;
      const candidates = hosts.includes(name) ? [name] : hosts;
      const mismatches = candidates.map((host) => checkServerIdentity(host, certificate));
      const matchesOne = mismatches.includes(undefined);
      return matchesOne ? undefined : mismatches[0];
    },
  };
}
