import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { provide } from '../support/programs.ts';
import { runDir } from '../support/run.ts';
import type { Engine } from './engine.ts';

/**
 * Images made from Debian's packages, for machines that cannot reach a registry of images. They have the names that
 * `Dockerfile` and `compose.yaml` use, and behave like the real ones as far as the tests need. The versions of
 * PostgreSQL, Redis and HAProxy are those of Debian.
 */

const PROJECT = resolve(import.meta.dirname, '../..');
const MIRROR = 'http://deb.debian.org/debian';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The machine's proxies of HTTP, as options of `docker build`. */
export const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']
  .filter((name) => process.env[name] !== undefined)
  .map((name) => `--build-arg=${name}`);

/** Returns the base images of the Dockerfile, in order. */
const listBases = (): string[] =>
  [...readFileSync(join(PROJECT, 'Dockerfile'), 'utf8').matchAll(/^FROM (\S+)/gm)].map(([, name]) => name!);

/** Returns the image of a service in compose.yaml. */
function imageOf(service: string): string {
  const { services } = parse(readFileSync(join(PROJECT, 'compose.yaml'), 'utf8'), { merge: true });
  return services[service].image;
}

const install = (packages: string): string =>
  `RUN apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends ${packages} && rm -rf /var/lib/apt/lists/*`;

/** Does what the official image of Postgres does with its variables, data and arguments. */
const POSTGRES_ENTRYPOINT = `#!/bin/sh
set -e
[ "$1" = postgres ] || exec "$@"
shift
PATH="$(echo /usr/lib/postgresql/*/bin):$PATH"
export PGDATA=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres /run/postgresql
  chown postgres /var/lib/postgresql
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" postgres "$@"
fi
user="\${POSTGRES_USER:-postgres}"
method="\${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$user" --pwfile=/tmp/password --auth-host="$method" $POSTGRES_INITDB_ARGS
  rm /tmp/password
  echo "host all all all $method" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=''" start
  [ "\${POSTGRES_DB:-$user}" = postgres ] \\
    || createdb --username="$user" --maintenance-db=postgres "\${POSTGRES_DB:-$user}"
  pg_ctl --wait stop
fi
exec postgres -c listen_addresses='*' "$@"
`;

/** The Dockerfile of an image, and the files that it copies. */
interface Recipe {
  dockerfile: string;
  files?: Record<string, string>;
}

function makeRecipes(debian: string): Record<string, Recipe> {
  return {
    [imageOf('postgres')]: {
      files: { 'entrypoint.sh': POSTGRES_ENTRYPOINT },
      dockerfile: `FROM ${debian}
${install('postgresql')}
RUN rm -rf /var/lib/postgresql/* /etc/postgresql
COPY entrypoint.sh /usr/local/bin/docker-entrypoint.sh
ENV LANG=C.UTF-8
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]`,
    },
    [imageOf('redis')]: {
      dockerfile: `FROM ${debian}
${install('redis-server')}
WORKDIR /data
ENTRYPOINT ["/usr/bin/env"]
CMD ["redis-server", "--protected-mode", "no"]`,
    },
    [imageOf('proxy')]: {
      dockerfile: `FROM ${debian}
${install('haproxy')}
STOPSIGNAL SIGUSR1
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]`,
    },
  };
}

/** Makes the base images of the Dockerfile. A build of the engine does not repeat steps whose inputs are unchanged. */
export async function provideBases(engine: Engine, log: (line: string) => void): Promise<void> {
  const [node, debian] = listBases() as [string, string];
  const has = (name: string) =>
    engine.docker('image', 'inspect', name).then(
      () => true,
      () => false,
    );
  if (!(await has(debian))) {
    log(`making ${debian} from Debian's packages`);
    await makeDebian(engine, debian);
  }
  log(`making ${node} from it, with this machine's Node and npm`);
  await makeNode(engine, node, debian);
}

/** Makes the base images, and the images of the servers in compose.yaml. */
export async function provideStandIns(engine: Engine, log: (line: string) => void): Promise<void> {
  await provideBases(engine, log);
  const [, debian] = listBases() as [string, string];
  for (const [name, recipe] of Object.entries(makeRecipes(debian))) {
    log(`making ${name} from Debian's packages`);
    await build(engine, name, makeFolder('recipe', runDir()), recipe);
  }
}

async function makeDebian(engine: Engine, name: string): Promise<void> {
  const suite = /:(\w+)-slim/.exec(name)![1]!;
  const program = await provide('debootstrap');
  const folder = makeFolder('debian', '/var/tmp');
  try {
    await promisify(execFile)(program, ['--variant=minbase', suite, folder, MIRROR], { maxBuffer: 64 << 20 });
    // dpkg need not write each file to the disk before it continues.
    writeFileSync(join(folder, 'etc/dpkg/dpkg.cfg.d/unsafe-io'), 'force-unsafe-io\n');
    for (const cache of ['var/cache/apt', 'var/lib/apt/lists']) removeFolder(join(folder, cache));
    await engine.run('sh', ['-c', `tar -C ${folder} -c . | docker import - ${name}`]);
  } finally {
    removeFolder(folder);
  }
}

/**
 * Makes the image of Node: Debian with this process's Node, and the machine's npm. The image also has what npm needs on
 * this machine: the address of the registry, and the certificates of authorities.
 */
async function makeNode(engine: Engine, name: string, debian: string): Promise<void> {
  if (!name.startsWith(`node:${process.versions.node}-`))
    throw new Error(`the Dockerfile has ${name}, and this is Node ${process.version}`);
  const ask = async (program: string, ...args: string[]) =>
    (await promisify(execFile)(program, args)).stdout.trim();
  const npm = dirname(dirname(realpathSync(await ask('which', 'npm'))));
  const folder = makeFolder('node', runDir());
  const copy = (from: string, to: string) =>
    cpSync(from, join(folder, 'root', to), { recursive: true, dereference: true });
  copy(realpathSync(process.execPath), 'usr/local/bin/node');
  copy(npm, 'usr/local/lib/node_modules/npm');
  const settings = [`registry=${await ask('npm', 'config', 'get', 'registry')}`];
  if (existsSync(CERTIFICATES)) {
    copy(CERTIFICATES, CERTIFICATES);
    settings.push(`cafile=${CERTIFICATES}`);
  }
  await build(engine, name, folder, {
    files: { 'root/usr/local/etc/npmrc': settings.join('\n') },
    dockerfile: `FROM ${debian}
${install('libatomic1 libstdc++6')}
COPY root /
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm`,
  });
}

async function build(
  engine: Engine,
  name: string,
  folder: string,
  { dockerfile, files }: Recipe,
): Promise<void> {
  for (const [file, content] of Object.entries({ ...files, Dockerfile: dockerfile })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), content, { mode: 0o755 });
  }
  await engine.docker('build', '--quiet', '--network=host', ...PROXIES, `--tag=${name}`, folder);
}
