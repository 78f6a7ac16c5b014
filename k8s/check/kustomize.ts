import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { type Generator, generate, renameReferences } from './generate.ts';
import { type KubernetesObject, nameOf, walk } from './objects.ts';
import { applyOperations, merge, type Operation } from './patch.ts';

/**
 * Builds a kustomization without kustomize, so that the manifests can be checked on a machine that has only Node. It
 * knows the fields that stand here and refuses every other; `npm run k8s:check -- --kubectl` compares it with the real one.
 */

interface Kustomization {
  apiVersion: string;
  kind: string;
  namespace?: string;
  resources?: string[];
  images?: Image[];
  patches?: Patch[];
  configMapGenerator?: Generator[];
  secretGenerator?: Generator[];
}

interface Image {
  name: string;
  newName?: string;
  newTag?: string;
}

interface Patch {
  patch: string;
  target: { kind: string; name: string };
}

const GENERATOR_FIELDS = ['name', 'envs', 'files', 'literals', 'options'];

const FIELDS: Record<string, string[]> = {
  '': [
    'apiVersion',
    'kind',
    'namespace',
    'resources',
    'images',
    'patches',
    'configMapGenerator',
    'secretGenerator',
  ],
  images: ['name', 'newName', 'newTag'],
  patches: ['patch', 'target'],
  configMapGenerator: GENERATOR_FIELDS,
  secretGenerator: GENERATOR_FIELDS,
};

const NOT_NAMESPACED = ['Namespace', 'ClusterRole', 'ClusterRoleBinding', 'PersistentVolume'];

/** The objects of a folder with a kustomization.yaml; throws for what this does not know how to build. */
export function buildKustomization(folder: string): KubernetesObject[] {
  const { objects, generated } = build(folder);
  for (const kind of ['ConfigMap', 'Secret'] as const) renameReferences(objects, kind, generated[kind]);
  return objects;
}

interface Built {
  objects: KubernetesObject[];
  /** Full names of generated objects by the names that manifests use. */
  generated: Record<'ConfigMap' | 'Secret', Map<string, string>>;
}

function build(folder: string): Built {
  const kustomization = readKustomization(folder);
  const built: Built = { objects: [], generated: { ConfigMap: new Map(), Secret: new Map() } };
  for (const resource of kustomization.resources ?? []) addResource(built, join(folder, resource));
  addGenerated(built, 'ConfigMap', kustomization.configMapGenerator, folder);
  addGenerated(built, 'Secret', kustomization.secretGenerator, folder);
  for (const patch of kustomization.patches ?? []) applyPatch(built.objects, patch, folder);
  for (const image of kustomization.images ?? []) setImage(built.objects, image);
  if (kustomization.namespace !== undefined) setNamespace(built.objects, kustomization.namespace);
  refuseDoubles(built.objects, folder);
  return built;
}

function readKustomization(folder: string): Kustomization {
  const file = join(folder, 'kustomization.yaml');
  const kustomization = parse(readFileSync(file, 'utf8')) as Kustomization & Record<string, unknown>;
  const refuse = (value: object, known: string[], where: string) => {
    const unknown = Object.keys(value).filter((field) => !known.includes(field));
    if (unknown.length > 0) throw new Error(`${file}: ${where}${unknown.join(', ')} is not supported`);
  };
  refuse(kustomization, FIELDS['']!, '');
  for (const [list, fields] of Object.entries(FIELDS)) {
    for (const item of (kustomization[list] as object[] | undefined) ?? []) refuse(item, fields, `${list}: `);
  }
  return kustomization;
}

function addResource({ objects, generated }: Built, path: string): void {
  if (!statSync(path).isDirectory()) {
    const documents = parseAllDocuments(readFileSync(path, 'utf8'), { uniqueKeys: true });
    if (!Array.isArray(documents)) return;
    for (const document of documents) {
      if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0]!.message}`);
      objects.push(document.toJS() as KubernetesObject);
    }
    return;
  }
  const inner = build(path);
  objects.push(...inner.objects);
  for (const kind of ['ConfigMap', 'Secret'] as const) {
    for (const [name, full] of inner.generated[kind]) generated[kind].set(name, full);
  }
}

function addGenerated(
  built: Built,
  kind: 'ConfigMap' | 'Secret',
  generators: Generator[] = [],
  folder: string,
): void {
  for (const generator of generators) {
    const object = generate(kind, generator, folder);
    built.objects.push(object);
    built.generated[kind].set(generator.name, object.metadata.name);
  }
}

function applyPatch(objects: KubernetesObject[], { patch, target }: Patch, folder: string): void {
  const matches = objects.filter(
    ({ kind, metadata }) => kind === target.kind && metadata.name === target.name,
  );
  if (matches.length !== 1) throw new Error(`${folder}: a patch has no target ${target.kind}/${target.name}`);
  const content = parse(patch) as Operation[] | Record<string, unknown>;
  if (Array.isArray(content)) applyOperations(matches[0]!, content);
  else merge(matches[0]!, content);
}

function setImage(objects: KubernetesObject[], { name, newName, newTag }: Image): void {
  for (const part of walk(objects)) {
    if (typeof part.image !== 'string') continue;
    const [current = '', tag] = part.image.split(':');
    if (current !== name) continue;
    const nextTag = newTag ?? tag;
    part.image = (newName ?? name) + (nextTag === undefined ? '' : `:${nextTag}`);
  }
}

function setNamespace(objects: KubernetesObject[], namespace: string): void {
  for (const object of objects) {
    if (object.kind === 'Namespace') object.metadata.name = namespace;
    else if (!NOT_NAMESPACED.includes(object.kind)) object.metadata.namespace = namespace;
  }
}

function refuseDoubles(objects: KubernetesObject[], folder: string): void {
  const names = objects.map(nameOf);
  const double = names.find((name, index) => names.indexOf(name) !== index);
  if (double !== undefined) throw new Error(`${folder}: ${double} stands twice`);
}
