import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readObjects } from '../../k8s/check/kustomize.ts';
import type { Cluster } from './cluster.ts';
import type { Operator } from './operator.ts';
import { editFile, type Images, TAGS } from './releases.ts';
import type { ManagedPostgres, ManagedRedis } from './servers.ts';
import type { Traffic } from './traffic.ts';

/** The servers, the operator and the clients of the rehearsal. Every scene uses them. */
export interface Stage {
  images: Images;
  cluster: Cluster;
  operator: Operator;
  postgres: ManagedPostgres;
  redis: ManagedRedis;
  passwords: Record<'owner' | 'serving' | 'backup' | 'metrics' | 'redis', string>;
  traffic: Traffic;
  /** Prints an observation. */
  note(line: string): void;
}

/** Throws if a condition does not hold. The message says what was expected, and the rehearsal fails. */
export function require(holds: unknown, expected: string): asserts holds {
  if (!holds) throw new Error(`expected: ${expected}`);
}

const PRODUCTION = 'k8s/overlays/production';
const fileOf = ({ checkout }: Operator, name: string) => join(checkout, PRODUCTION, name);

/** Writes the address of this Postgres into databases.ini, in place of `before`. */
export function nameHost(operator: Operator, before: string, { port }: ManagedPostgres): void {
  editFile(fileOf(operator, 'databases.ini'), new RegExp(before, 'g'), `host=127.0.0.1 port=${port}`);
}

/** Sets the tag of the image that the next release uses. */
export const setTag = (operator: Operator, tag: string): void =>
  editFile(fileOf(operator, 'kustomization.yaml'), /newTag: .*/, `newTag: ${tag} `);

/** Turns off prepared statements, as the configuration table requires for PgBouncer before 1.21. */
export function withoutPrepare(operator: Operator): void {
  editFile(fileOf(operator, 'pgbouncer.ini'), /^max_prepared_statements = .*\n/m, '');
  appendFileSync(fileOf(operator, 'settings.env'), 'DATABASE_PREPARE=false\n');
}

/** Creates secrets.yaml from its example, with passwords, hosts and the certificate authority. */
export function fillInSecrets(stage: Stage, authority: string): void {
  const { operator, cluster, postgres, redis, passwords } = stage;
  const port = (origin: string) => new URL(origin).port;
  const text = readFileSync(fileOf(operator, 'secrets.example.yaml'), 'utf8')
    .replaceAll('bookmarks_a:PASSWORD', `bookmarks_a:${passwords.serving}`)
    .replaceAll('"bookmarks_a" "PASSWORD"', `"bookmarks_a" "${passwords.serving}"`)
    .replaceAll('bookmarks_owner:PASSWORD', `bookmarks_owner:${passwords.owner}`)
    .replaceAll('bookmarks_backup:PASSWORD', `bookmarks_backup:${passwords.backup}`)
    .replaceAll('rediss://bookmarks:PASSWORD', `rediss://bookmarks:${passwords.redis}`)
    .replaceAll('PASSWORD', passwords.metrics)
    .replaceAll('@pgbouncer:6432', `@127.0.0.1:${port(cluster.pooler.origin)}`)
    .replaceAll('postgres.example.org:5432', `localhost:${postgres.port}`)
    .replaceAll('redis.example.org:6379', `localhost:${redis.port}`)
    // The authority that signed Postgres's certificate also signed that of Redis. So REDIS_CA_FILE is set too.
    .replace(/^ {2}# REDIS_CA_FILE/m, '  REDIS_CA_FILE')
    .replace(
      / {2}# redis-ca.crt: \|\n.*\n.*\n/,
      `  redis-ca.crt: |\n${authority.replace(/^(?=.)/gm, '    ')}`,
    )
    .replace(
      / {4}-----BEGIN CERTIFICATE-----\n {4}-----END CERTIFICATE-----\n/,
      authority.replace(/^(?=.)/gm, '    '),
    );
  // Checks the parsed objects instead of the text, because comments in the text may still contain examples.
  if (/PASSWORD|example\.org/.test(JSON.stringify(readObjects(text))))
    throw new Error('secrets.example.yaml holds more than the rehearsal fills in');
  writeFileSync(fileOf(operator, 'secrets.yaml'), text);
}

/** Returns a value of the Secret `connections`. */
export const readConnection = ({ operator }: Stage, key: string): Promise<string> =>
  operator.must(
    `kubectl -n bookmarks get secret connections --output 'go-template={{index .data "…" | base64decode}}'`,
    key,
  );

/** Changes a value of the Secret `connections`. */
export async function patchSecret(
  stage: Stage,
  key: string,
  change: (value: string) => string,
): Promise<void> {
  const value = change(await readConnection(stage, key));
  await stage.operator.must(
    `kubectl -n bookmarks patch secret connections --patch '{"stringData":{"…":"…"}}'`,
    key,
    value,
  );
}

/** Returns the versions of a Deployment's pods, from the tags of their images. */
export const versionsOf = ({ cluster }: Stage, name: string): string[] => [
  ...new Set(
    cluster.deployments
      .get(name)!
      .pods.map(({ template }) => template.spec.containers[0].image.split(':').at(-1)),
  ),
];

/** Returns the requests that failed during this step. */
export const failuresOf = ({ traffic }: Stage, during: string): string[] =>
  traffic.failures.filter((failure) => failure.during === during).map(({ what }) => what);

export { TAGS };
