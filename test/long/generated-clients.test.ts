import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROUTES } from '../../src/routes/app.ts';
import { makeFolder, removeFolder } from '../support/folders.ts';
import { findProgram } from '../support/programs.ts';
import { installFromRegistry } from '../support/registry.ts';
import { useService } from '../support/service.ts';

/**
 * Checks that other tools can use `/openapi.json`. Linters find no fault, generated types and clients compile, and
 * every endpoint works through generated code.
 */

const TOOLS = {
  '@redocly/cli': '2.77.0',
  '@stoplight/spectral-cli': '6.16.3',
  'openapi-typescript': '7.13.0',
  '@hey-api/openapi-ts': '0.95.0',
  orval: '7.13.2',
  // Contains OpenAPI Generator as a Java archive. Later versions of the package download it from elsewhere.
  '@openapitools/openapi-generator-cli': '1.0.18-4.3.1',
  // That version reads OpenAPI 3.0.
  '@apiture/openapi-down-convert': '0.14.2',
  'openapi-to-postmanv2': '6.3.3',
  newman: '6.2.2',
  typescript: '5.9.3',
};

const run = promisify(execFile);
const service = useService();
const folder = makeFolder('generated-clients');
afterAll(() => removeFolder(folder));

let isInstalled = false;
beforeAll(async () => {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', dependencies: TOOLS }));
  isInstalled = await installFromRegistry([], folder);
  const document = await fetch(`${service.origin}/openapi.json`);
  writeFileSync(join(folder, 'openapi.json'), await document.text());
});

/** Runs an installed tool in the folder. Returns its output. */
async function runTool(name: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await run(join(folder, 'node_modules/.bin', name), args, { cwd: folder });
  return stdout + stderr;
}

/** Defines a test that is skipped if the registry cannot be reached. */
const testWithTools = (name: string, work: () => Promise<void>): void =>
  test(name, async ({ skip }) => {
    if (!isInstalled) skip('the package registry cannot be reached');
    await work();
  });

testWithTools('Redocly and Spectral find nothing to warn of', async () => {
  writeFileSync(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
  expect(await runTool('redocly', 'lint', 'openapi.json')).not.toMatch(/warning/);
  expect(await runTool('spectral', 'lint', '--fail-severity=hint', 'openapi.json')).toContain('No results');
});

testWithTools('types and clients of three generators compile under strict', async () => {
  mkdirSync(join(folder, 'generated'), { recursive: true });
  await runTool('openapi-typescript', 'openapi.json', '-o', 'generated/types.ts');
  await runTool('openapi-ts', '-i', 'openapi.json', '-o', 'generated/hey', '-c', '@hey-api/client-fetch');
  writeFileSync(
    join(folder, 'orval.config.cjs'),
    "module.exports = { api: { input: './openapi.json', output: { target: './generated/orval.ts', client: 'fetch' } } };",
  );
  await runTool('orval', '--config', 'orval.config.cjs');
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    skipLibCheck: true,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['generated'] }));
  await runTool('tsc', '--project', folder);
  const types = readFileSync(join(folder, 'generated/hey/types.gen.ts'), 'utf8');
  for (const name of ['Bookmark', 'Tag', 'Token', 'Session', 'Deleted', 'TagsListResponse', 'Error'])
    expect(types).toMatch(new RegExp(`export type ${name} = `));
});

/** A program that calls every endpoint once through the generated client, and prints the calls. */
const PROGRAM = `
import { client } from './hey/client.gen';
import * as api from './hey/sdk.gen';

const [baseUrl, code] = process.argv.slice(2);
const called = new Set<string>();
client.setConfig({ baseUrl, throwOnError: true, headers: { connection: 'close' } });
client.interceptors.request.use((request) => (called.add(new URL(request.url).pathname.replace('/api/v1', '')), request));
const data = async <T>(response: Promise<{ data: T }>): Promise<NonNullable<T>> => (await response).data!;

const { token, user } = await data(api.authInvite({ body: { code } }));
client.setConfig({ auth: token });
const all = { body: {} };
await data(api.accountGet(all));
await data(api.userProfile(all));
const added = await data(api.bookmarksAdd({ body: { url: 'https://example.org/', tags: ['one'] } }));
await data(api.bookmarksEdit({ body: { id: added.id, title: 'T' } }));
await data(api.bookmarksGet({ body: { id: added.id } }));
await data(api.bookmarksList(all));
await data(api.bookmarksSearch({ body: { query: 'T', tags: ['one'] } }));
await data(api.bookmarksSync({ body: { cursor: 0 } }));
await data(api.bookmarksChanges(all));
await data(api.bookmarksDigest(all));
await data(api.bookmarksBatch({ body: { operations: [{ do: 'edit', id: added.id, comment: 'C' }] } }));
const tag = await data(api.tagsCreate({ body: { name: 'two' } }));
const other = await data(api.tagsCreate({ body: { name: 'three' } }));
await data(api.tagsUpdate({ body: { id: tag.id, name: 'zwei' } }));
await data(api.tagsMerge({ body: { id: other.id, into_id: tag.id } }));
await data(api.tagsList(all));
await data(api.tagsDelete({ body: { id: tag.id } }));
await data(api.exportBookmarks(all));
await data(api.importBookmarks({ body: { bookmarks: [{ url: 'https://example.org/2' }] } }));
await data(api.bookmarksDelete({ body: { id: added.id, trash: true } }));
await data(api.trashList(all));
await data(api.trashRestore({ body: { ids: [added.id] } }));
await data(api.trashDelete({ body: { all: true } }));
const made = await data(api.tokensCreate({ body: { name: 'n', scope: 'read' } }));
await data(api.tokensList(all));
await data(api.tokensRevoke({ body: { id: made.id } }));
const { sessions } = await data(api.sessionsList(all));
await data(api.sessionsRevokeOthers(all));
await api.sessionsRevoke({ body: { id: sessions[0].id + 1_000 }, throwOnError: false });
await data(api.accountDelete({ body: { confirm: user.email } }));
await api.logout({ body: {}, throwOnError: false });
await api.authDevice({ body: { code: 'AAAABBBBCCCC' }, throwOnError: false });
await api.authExchange({
  body: { code: 'a'.repeat(43), code_verifier: 'b'.repeat(43), redirect_uri: 'http://127.0.0.1:1/' },
  throwOnError: false,
});
console.log(JSON.stringify([...called]));
`;

testWithTools('every endpoint works through a generated client', async () => {
  await runTool('openapi-ts', '-i', 'openapi.json', '-o', 'generated/hey', '-c', '@hey-api/client-fetch');
  const source = join(folder, 'generated/program.ts');
  const target = join(folder, 'generated/program.mjs');
  writeFileSync(source, PROGRAM);
  const bundle = await rolldown({ input: source, platform: 'node' });
  await bundle.write({ file: target, format: 'esm' });
  const code = await service.invite('generated@localhost');
  const { stdout } = await run(process.execPath, [target, `${service.origin}/api/v1`, code]);
  expect(JSON.parse(stdout).sort()).toEqual(ROUTES.map(({ path }) => path).sort());
});

/**
 * Simplifies a schema for OpenAPI Generator 4, which knows neither unions of types nor constants that are booleans. Of
 * a union, its first variant is kept.
 */
function simplify(_key: string, schema: { anyOf?: object[]; oneOf?: object[]; type?: unknown } | null) {
  if (schema?.type === 'boolean') return { type: 'boolean' };
  return schema?.anyOf?.[0] ?? schema?.oneOf?.[0] ?? schema;
}

/** Generates a client with OpenAPI Generator. */
async function generate(language: string, target: string, packageName: string): Promise<void> {
  const input = 'openapi-3.0.json';
  await runTool('openapi-down-convert', '--input', 'openapi.json', '--output', input);
  const document = JSON.parse(readFileSync(join(folder, input), 'utf8'));
  writeFileSync(join(folder, input), JSON.stringify(document, simplify));
  const options = ['-i', input, '-g', language, '-o', target, '--package-name', packageName];
  await runTool('openapi-generator', 'generate', ...options);
}

/** Adds, edits, searches, syncs and deletes a bookmark, and prints what the client has read. */
const PYTHON_PROGRAM = `
import json, sys
import bookmarks_api as api

host, token = sys.argv[1:]
configuration = api.Configuration(host=host)
configuration.access_token = token
bookmarks = api.BookmarksApi(api.ApiClient(configuration))
added = bookmarks.bookmarks_add(api.BookmarksAddRequest(url='https://example.org/', tags=['one']))
edited = bookmarks.bookmarks_edit(api.BookmarksEditRequest(id=added.id, title='T'))
found = bookmarks.bookmarks_search(api.BookmarksSearchRequest(query='T', tags=['one']))
synced = bookmarks.bookmarks_sync(api.BookmarksSyncRequest(cursor=added.id - 1))
deleted = bookmarks.bookmarks_delete(api.BookmarksDeleteRequest(id=added.id))
ids = [added.id, edited.id, found.bookmarks[0].id, synced.bookmarks[0].id, synced.cursor]
print(json.dumps({'ids': ids, 'title': found.bookmarks[0].title, 'deleted': deleted.deleted}))
`;

/** Does the same. */
const GO_PROGRAM = `
package main

import (
	api "bookmarks"
	"context"
	"encoding/json"
	"os"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: os.Args[1]}}
	client := api.NewAPIClient(configuration).BookmarksApi
	token := context.WithValue(context.Background(), api.ContextAccessToken, os.Args[2])
	add := api.BookmarksAddRequest{Url: "https://example.org/", Tags: &[]string{"one"}}
	added, _, err := client.BookmarksAdd(token).BookmarksAddRequest(add).Execute()
	check(err)
	edit := api.BookmarksEditRequest{Id: &added.Id, Title: api.PtrString("T")}
	edited, _, err := client.BookmarksEdit(token).BookmarksEditRequest(edit).Execute()
	check(err)
	search := api.BookmarksSearchRequest{Query: api.PtrString("T"), Tags: &[]string{"one"}}
	found, _, err := client.BookmarksSearch(token).BookmarksSearchRequest(search).Execute()
	check(err)
	sync := api.BookmarksSyncRequest{Cursor: api.PtrInt64(added.Id - 1)}
	synced, _, err := client.BookmarksSync(token).BookmarksSyncRequest(sync).Execute()
	check(err)
	remove := api.BookmarksDeleteRequest{Id: &added.Id}
	deleted, _, err := client.BookmarksDelete(token).BookmarksDeleteRequest(remove).Execute()
	check(err)
	ids := []int64{added.Id, edited.Id, found.Bookmarks[0].Id, synced.Bookmarks[0].Id, synced.Cursor}
	result := map[string]interface{}{"ids": ids, "title": found.Bookmarks[0].Title, "deleted": deleted.Deleted}
	check(json.NewEncoder(os.Stdout).Encode(result))
}
`;

/** Runs a program that uses a generated client, and checks what it has read. */
async function checkProgram(start: (...args: string[]) => Promise<{ stdout: string }>): Promise<void> {
  const user = await service.user();
  const { stdout } = await start(`${service.origin}/api/v1`, user.token);
  const { ids, ...rest } = JSON.parse(stdout);
  expect(rest).toEqual({ title: 'T', deleted: true });
  expect(ids[0]).toBeGreaterThan(2 ** 32);
  expect(ids).toEqual(Array(5).fill(ids[0]));
  expect((await user.post('/bookmarks/list')).body.bookmarks).toEqual([]);
}

/** Returns what is missing for a client in this language, which needs these checks to pass. */
async function findMissing(program: 'python' | 'go', hasLibraries: () => Promise<boolean>) {
  if (!isInstalled) return 'the package registry cannot be reached';
  if (findProgram('java') === undefined) return 'Java is not installed, which OpenAPI Generator needs';
  if (findProgram(program) === undefined) return `${program} is not installed`;
  return (await hasLibraries()) ? undefined : `a library that clients in ${program} need is not installed`;
}

test('a client in Python adds, edits, searches, syncs and deletes', async ({ skip }) => {
  const modules = 'import urllib3, six, certifi, dateutil';
  const missing = await findMissing('python', () =>
    run('python3', ['-c', modules]).then(
      () => true,
      () => false,
    ),
  );
  if (missing !== undefined) skip(missing);
  await generate('python', 'python', 'bookmarks_api');
  writeFileSync(join(folder, 'python/program.py'), PYTHON_PROGRAM);
  await checkProgram((...args) => run('python3', [join(folder, 'python/program.py'), ...args]));
});

/** Where Debian installs libraries for Go. */
const DEBIAN_GOPATH = '/usr/share/gocode';

test('a client in Go adds, edits, searches, syncs and deletes', async ({ skip }) => {
  const oauth2 = join(DEBIAN_GOPATH, 'src/golang.org/x/oauth2');
  const missing = await findMissing('go', async () => existsSync(oauth2));
  if (missing !== undefined) skip(missing);
  await generate('go-experimental', 'go/src/bookmarks', 'bookmarks');
  mkdirSync(join(folder, 'go/src/program'));
  writeFileSync(join(folder, 'go/src/program/main.go'), GO_PROGRAM);
  const environment = { GO111MODULE: 'off', GOPATH: `${join(folder, 'go')}:${DEBIAN_GOPATH}` };
  const env = { ...process.env, ...environment, GOCACHE: join(folder, 'go/cache') };
  await checkProgram((...args) => run('go', ['run', 'program', ...args], { env }));
});

testWithTools('a Postman collection has examples for bodies, and its reads run', async () => {
  const options = 'parametersResolution=Example,folderStrategy=Tags';
  await runTool('openapi2postmanv2', '-s', 'openapi.json', '-o', 'collection.json', '-O', options);
  const text = readFileSync(join(folder, 'collection.json'), 'utf8');
  const bodies = [...text.matchAll(/"raw":"((?:[^"\\]|\\.)*)"/g)].map(([, body]) => body);
  expect(bodies.length).toBeGreaterThan(20);
  expect(bodies.filter((body) => /<(string|integer|dateTime|boolean)>/.test(body!))).toEqual([]);
  const { token } = await service.session();
  const args = [
    'run',
    'collection.json',
    '--folder',
    'tags',
    '--reporters',
    'json',
    '--reporter-json-export',
    'run.json',
  ];
  const variables = ['--env-var', `baseUrl=${service.origin}/api/v1`, '--env-var', `bearerToken=${token}`];
  await runTool('newman', ...args, ...variables);
  const { executions } = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8')).run;
  const statuses = new Map(
    executions.map((each: { item: { name: string }; response: { code: number } }) => [
      each.item.name,
      each.response.code,
    ]),
  );
  expect(statuses.get('List all tags')).toBe(200);
  expect(statuses.get('Create a tag')).toBe(200);
});
