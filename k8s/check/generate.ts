import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KubernetesObject, walk } from './objects.ts';

/** One entry of `configMapGenerator` or `secretGenerator`. */
export interface Generator {
  name: string;
  envs?: string[];
  files?: string[];
  literals?: string[];
  options?: { disableNameSuffixHash?: boolean; labels?: Record<string, string> };
}

/** Makes the ConfigMap or Secret; its name carries a hash of its content unless that is off. */
export function generate(
  kind: 'ConfigMap' | 'Secret',
  generator: Generator,
  folder: string,
): KubernetesObject {
  const { name, options = {} } = generator;
  const entries = readEntries(generator, folder);
  const data =
    kind === 'Secret' ? mapValues(entries, (text) => Buffer.from(text).toString('base64')) : entries;
  const object: KubernetesObject = {
    apiVersion: 'v1',
    kind,
    metadata: { name, ...(options.labels && { labels: options.labels }) },
    data,
    ...(kind === 'Secret' && { type: 'Opaque' }),
  };
  if (!options.disableNameSuffixHash) object.metadata.name = `${name}-${hashOf(object)}`;
  return object;
}

/** Makes every mention of generated ConfigMaps and Secrets use their full names. */
export function renameReferences(
  objects: KubernetesObject[],
  kind: 'ConfigMap' | 'Secret',
  names: Map<string, string>,
) {
  const keys =
    kind === 'Secret' ? ['secretRef', 'secretKeyRef'] : ['configMapRef', 'configMapKeyRef', 'configMap'];
  for (const part of walk(objects)) {
    for (const key of keys) rename(part[key], 'name', names);
    if (kind === 'Secret') rename(part.secret, 'secretName', names);
  }
}

function rename(reference: unknown, key: string, names: Map<string, string>): void {
  if (reference === null || typeof reference !== 'object') return;
  const fields = reference as Record<string, unknown>;
  const full = names.get(String(fields[key]));
  if (full !== undefined) fields[key] = full;
}

function readEntries(
  { envs = [], files = [], literals = [] }: Generator,
  folder: string,
): Record<string, string> {
  const lines = envs.flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'));
  const settings = [...lines.filter((line) => line.trim() !== '' && !line.startsWith('#')), ...literals];
  const named = files.map((file): [string, string] => {
    const [key, path = key] = split(file);
    return [key, readFileSync(join(folder, path), 'utf8')];
  });
  return Object.fromEntries([...settings.map((line) => split(line) as [string, string]), ...named]);
}

const split = (text: string): [string, string?] => {
  const at = text.indexOf('=');
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
};

const mapValues = (entries: Record<string, string>, change: (text: string) => string) =>
  Object.fromEntries(Object.entries(entries).map(([key, text]) => [key, change(text)]));

/** As kustomize: ten digits of the SHA-256 of the sorted JSON (without the name), none that could spell a word. */
function hashOf({ kind, data, type }: KubernetesObject): string {
  const sorted = Object.fromEntries(Object.entries(data as object).sort(([a], [b]) => (a < b ? -1 : 1)));
  const json = JSON.stringify({ data: sorted, kind, name: '', ...(type && { type }) });
  // Go's JSON escapes what could end a script element.
  const escaped = json.replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
  const digits = createHash('sha256').update(escaped).digest('hex').slice(0, 10);
  return digits.replace(/[013ae]/g, (digit) => ({ 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' })[digit]!);
}
