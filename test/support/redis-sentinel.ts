import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { findFreePort } from './ports.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { certificate, privateKey } from './tls/localhost.ts';

/** The options of the Sentinels and their data nodes. */
export interface SentinelOptions {
  /** The password of the data nodes. */
  password?: string;
  /** The password of the Sentinels. */
  sentinelPassword?: string;
  /** Whether all servers use only TLS. Their certificate contains a host name and no address. */
  tls?: boolean;
}

/** A master and a replica, watched by three Sentinels. A failover needs the votes of two Sentinels. */
export interface TestSentinels extends AsyncDisposable {
  readonly data: readonly [RedisServer, RedisServer];
  readonly sentinels: readonly RedisServer[];
  /** The `REDIS_URL` of these servers. */
  readonly url: string;
  /** The certificate authority in PEM, if TLS is used. */
  readonly ca: string | undefined;
  /** Returns the server that is the master now, according to a Sentinel. */
  findMaster(): Promise<RedisServer>;
  /** Makes the replica take the master's place, as an operator does. Resolves when the Sentinels name the new master. */
  failOver(): Promise<void>;
}

/** The name by which the Sentinels know the master. */
const NAME = 'main';

/** After this time without a response, a Sentinel considers the master lost. */
const DOWN_AFTER_MS = 1_000;

/** Starts two data nodes and three Sentinels. Resolves when the Sentinels know each other and the replica. */
export async function startSentinels(options: SentinelOptions = {}): Promise<TestSentinels> {
  const { password, sentinelPassword, tls = false } = options;
  const master = await startData(options);
  const replica = await startData(options, master);
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(options, master)));
  const hosts = sentinels.map(({ port }) => `${hostOf(tls)}:${port}`).join(',');
  const credentials = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
  const admins = sentinels.map(({ port }) => connect(port, sentinelPassword, tls));
  const ask = async (admin: Redis, ...args: string[]) => admin.call('SENTINEL', ...args);
  const findMaster = async () => {
    const [, port] = (await Promise.any(
      admins.map((admin) => ask(admin, 'GET-MASTER-ADDR-BY-NAME', NAME)),
    )) as string[];
    return [master, replica].find((server) => server.port === Number(port))!;
  };
  for (const admin of admins) {
    while ((await ask(admin, 'CKQUORUM', NAME).catch(() => undefined)) === undefined) await sleep(50);
    while (((await ask(admin, 'REPLICAS', NAME)) as unknown[]).length === 0) await sleep(50);
    while (((await ask(admin, 'SENTINELS', NAME)) as unknown[]).length < 2) await sleep(50);
  }
  return {
    data: [master, replica],
    sentinels,
    url: `redis${tls ? 's' : ''}+sentinel://${credentials}${hosts}/${NAME}`,
    ca: tls ? certificate : undefined,
    findMaster,
    async failOver() {
      const before = await findMaster();
      // Sentinels refuse the command while another failover is in progress, and until they know that the replica is up
      // to date.
      const begin = (attempt: number) =>
        ask(admins[attempt % admins.length]!, 'FAILOVER', NAME).catch(() => undefined);
      for (let n = 0; (await begin(n)) === undefined; n += 1) await sleep(100);
      while ((await findMaster().catch(() => before)) === before) await sleep(50);
    },
    async [Symbol.asyncDispose]() {
      for (const admin of admins) admin.disconnect();
      await Promise.all([...sentinels, master, replica].map((server) => server.stop()));
    },
  };
}

const hostOf = (tls: boolean): string => (tls ? 'localhost' : '127.0.0.1');

function connect(port: number, password: string | undefined, tls: boolean): Redis {
  const admin = new Redis({
    ...{ host: hostOf(tls), port, enableReadyCheck: false, commandTimeout: 1_000, retryStrategy: () => 200 },
    ...(password !== undefined && { password }),
    ...(tls && { tls: { ca: certificate } }),
  });
  return admin.on('error', () => {});
}

const TLS_FILES = { 'certificate.pem': certificate, 'key.pem': privateKey };

function tlsArgs(port: number): string[] {
  const args = ['--tls-port', String(port), '--tls-auth-clients', 'no', '--tls-replication', 'yes'];
  args.push('--tls-cert-file', 'certificate.pem', '--tls-key-file', 'key.pem');
  return [...args, '--tls-ca-cert-file', 'certificate.pem'];
}

async function startData(
  { password, tls = false }: SentinelOptions,
  master?: RedisServer,
): Promise<RedisServer> {
  const port = await findFreePort();
  const args = tls ? tlsArgs(port) : [];
  args.push('--repl-diskless-sync-delay', '0', '--replica-announce-ip', hostOf(tls));
  if (password !== undefined) args.push('--requirepass', password, '--masterauth', password);
  if (master) args.push('--replicaof', hostOf(tls), String(master.port));
  const server = await startRedis({ port: tls ? 0 : port, args, ...(tls && { files: TLS_FILES }) });
  return { ...server, port };
}

async function startSentinel(options: SentinelOptions, master: RedisServer): Promise<RedisServer> {
  const { password, sentinelPassword, tls = false } = options;
  const port = await findFreePort();
  const config = [
    'sentinel resolve-hostnames yes',
    `sentinel announce-hostnames ${tls ? 'yes' : 'no'}`,
    `sentinel monitor ${NAME} ${hostOf(tls)} ${master.port} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 4000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${NAME} ${password}`]),
    ...(sentinelPassword === undefined
      ? []
      : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
  ];
  const files = { ...(tls && TLS_FILES), 'sentinel.conf': `${config.join('\n')}\n` };
  const args = ['--sentinel', ...(tls ? tlsArgs(port) : [])];
  const server = await startRedis({ port: tls ? 0 : port, args, files, configFile: 'sentinel.conf' });
  return { ...server, port };
}
