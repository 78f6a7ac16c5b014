/** The parsed value of `REDIS_URL`: the address of Redis, the credentials, and whether to use TLS. */

interface Access {
  username?: string;
  password?: string;
  /** Whether the connections use TLS. */
  tls: boolean;
}

/** The address of one server. */
export interface Endpoint {
  host: string;
  port: number;
}

/** Servers to connect to directly: one server, a failover pair, or some nodes of a cluster. */
interface RedisServers {
  kind: 'servers';
  urls: readonly string[];
}

/** Sentinels, and the name of the master whose address they know. The credentials are for the master. */
export interface RedisSentinels extends Access {
  kind: 'sentinels';
  sentinels: readonly Endpoint[];
  /** The name by which the Sentinels know the master. */
  name: string;
  db: number;
}

export type RedisAddress = RedisServers | RedisSentinels;

const SENTINEL_PORT = 26_379;

/** `redis+sentinel://[user:password@]host[:port][,host[:port]…]/name[/db]` */
const SENTINEL_URL =
  /^redis(?<s>s?)\+sentinel:\/\/(?:(?<userInfo>[^@/]*)@)?(?<hosts>[^@/]+)\/(?<name>[^/?#]+)(?:\/(?<db>\d{1,5}))?\/?$/;

/** A host name, an IPv4 address, or an IPv6 address in brackets; then an optional port. */
const HOST = /^(?<host>[\w.-]+|\[[\da-f:.]+\])(?::(?<port>\d{1,5}))?$/i;

/** The path of a server's url: nothing, or the number of a database. */
const DATABASE_PATH = /^\/?\d*$/;

/**
 * Parses `REDIS_URL`: urls separated by commas, or one `redis+sentinel://` url. Returns `undefined` for an invalid
 * value. A password with an unescaped `/` or `%` makes the value invalid, because it could be misread.
 */
export function parseRedisAddress(text: string): RedisAddress | undefined {
  if (/^rediss?\+sentinel:/.test(text)) return parseSentinelUrl(text);
  const urls = text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
  return urls.length > 0 && urls.every(isServerUrl) ? { kind: 'servers', urls } : undefined;
}

/** Whether each `%` in a text begins a valid escape. */
function isEscaped(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function isServerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || !/^rediss?:$/.test(url.protocol) || !DATABASE_PATH.test(url.pathname)) return false;
  return isEscaped(url.username + url.password) && url.hash === '';
}

function parseSentinelUrl(text: string): RedisSentinels | undefined {
  const groups = SENTINEL_URL.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const { s, userInfo = '', hosts = '', name = '', db = '0' } = groups;
  const sentinels = hosts.split(',').map(parseHost);
  if (!isEscaped(userInfo + name) || !sentinels.every((sentinel) => sentinel !== undefined)) return undefined;
  // Everything after the first colon is the password. It may contain colons.
  const [username = '', ...passwordParts] = userInfo.split(':');
  const credentials = decodeCredentials(username, passwordParts.join(':'));
  const masterName = decodeURIComponent(name);
  return { kind: 'sentinels', sentinels, name: masterName, db: Number(db), tls: s === 's', ...credentials };
}

function parseHost(text: string): Endpoint | undefined {
  const { host, port: digits } = HOST.exec(text.trim())?.groups ?? {};
  const port = Number(digits ?? SENTINEL_PORT);
  if (host === undefined || port < 1 || port > 65_535) return undefined;
  const withoutBrackets = host.replace(/^\[|\]$/g, '');
  return { host: withoutBrackets, port };
}

const decodeCredentials = (username: string, password: string): Omit<Access, 'tls'> => ({
  ...(username && { username: decodeURIComponent(username) }),
  ...(password && { password: decodeURIComponent(password) }),
});

/** Returns the credentials in a server's url, and whether the url asks for TLS. */
export function readAccess(url: string): Access {
  const { username, password, protocol } = new URL(url);
  return { tls: protocol === 'rediss:', ...decodeCredentials(username, password) };
}
