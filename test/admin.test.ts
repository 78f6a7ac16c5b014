import { describe, expect, test } from 'vitest';
import { parseRedisAddress } from '../src/coordination/redis/address.ts';
import { type Outcome, runCommand, runHere } from './support/command.ts';
import { createDatabase, runOn } from './support/database.ts';
import { openRedis } from './support/redis.ts';
import { startService, useService } from './support/service.ts';
import { until } from './support/until.ts';

// Tests the operator's commands. Most tests run a command in the process of the test, through the function that
// `src/main.ts` calls. The tests at the end start `node src/main.ts admin …` as a separate process instead, to show
// that the separate process ends by itself.

const service = useService();

const run = (args: string, env: Record<string, string> = {}): Promise<Outcome> =>
  runHere(['admin', ...args.split(' ')], { DATABASE_URL: service.database.url, ...env });

/** Runs a command and returns the one JSON object that it prints. */
const responseOf = async (args: string, env: Record<string, string> = {}) => readOutput(await run(args, env));

function readOutput({ code, output, errors }: Outcome) {
  expect({ code, errors }).toEqual({ code: 0, errors: expect.stringMatching(/^Database: [^\n]+\n$/) });
  expect(output.endsWith('\n')).toBe(true);
  expect(output.trimEnd()).not.toContain('\n');
  return JSON.parse(output);
}

/** Expects exit code 1, nothing on standard output, and the message on standard error without a stack trace. */
function expectRefusal({ code, output, errors }: Outcome, message: string | RegExp): void {
  expect({ code, output }).toEqual({ code: 1, output: '' });
  expect(errors).toMatch(message);
  expect(errors).not.toMatch(/^\s+at /m);
}

const TIMESTAMP = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
const inDays = (timestamp: string) => (Date.parse(timestamp) - Date.now()) / 86_400_000;
const profile = (token: string) => service.post('/user/profile', {}, { token });

test('audit list shows who did what, newest first, without secrets', async () => {
  const user = await service.user();
  const env = { ADMIN_OPERATOR: 'ann' };
  const { token } = await responseOf(`token create --email ${user.email} --scope read --name backup`, env);
  await responseOf(`--operator bob user set --email ${user.email} --premium true`, env);
  await run(`user suspend --email nobody@example.org`);
  const { actions, has_more: hasMore } = await responseOf('audit list --limit 1000');
  expect(hasMore).toBe(false);
  const own = actions.filter(
    ({ object }: { object: string }) => /nobody@|backup/.test(object) || object.includes(user.email),
  );
  const common = { id: expect.any(Number), at: TIMESTAMP };
  expect(own).toEqual([
    {
      ...common,
      operator: null,
      action: 'user suspend',
      object: '--email nobody@example.org',
      outcome: 'failed',
    },
    {
      ...common,
      operator: 'bob',
      action: 'user set',
      object: `--email ${user.email} --premium true`,
      outcome: 'done',
    },
    {
      ...common,
      operator: 'ann',
      action: 'token create',
      object: `--email ${user.email} --name backup --scope read`,
      outcome: 'done',
    },
  ]);
  expect(JSON.stringify(actions)).not.toContain(token.slice(-43));
  const before = own[1].id;
  expect((await responseOf(`audit list --limit 1 --before ${before}`)).actions[0].id).toBeLessThan(before);
});

test("token revoke --all revokes every token and session of a user, and no other user's", async () => {
  const user = await service.session();
  const { id } = (await user.post('/account/get')).body;
  const tokens = [user.token, await service.token(id, 'read')];
  const other = await service.user();
  expectRefusal(await run('token revoke --all'), /give either --id, or both --all and --email/);
  expectRefusal(
    await run(`token revoke --email ${user.email}`),
    /give either --id, or both --all and --email/,
  );
  expectRefusal(
    await run(`token revoke --id 1-1 --all --email ${user.email}`),
    /give either --id, or both --all/,
  );
  expect(await responseOf(`token revoke --all --email ${user.email}`)).toEqual({ revoked: 2 });
  for (const token of tokens) expect((await profile(token)).body.code).toBe('INVALID_TOKEN');
  expect((await profile(other.token)).status).toBe(200);
  expect(await responseOf(`token revoke --all --email ${user.email}`)).toEqual({ revoked: 0 });
});

test('user export prints everything that is stored about a user, except secrets', async () => {
  const user = await service.session('Export.Me@example.org');
  const { id } = (await user.post('/account/get')).body;
  await service.invite(user.email);
  // These are more bookmarks than an export reads at a time.
  const bookmarks = Array.from({ length: 501 }, (_, n) => ({ url: `https://example.org/${n}`, tags: ['a'] }));
  await user.post('/import', { bookmarks });
  const exported = await responseOf('user export --email export.me@example.org');
  expect(exported).toMatchObject({
    exported_at: TIMESTAMP,
    account: { id, email: 'Export.Me@example.org', created_at: TIMESTAMP },
    tier: { is_premium: false, suspended_at: null },
    identities: [],
    invites: [{ email: user.email, expires_at: TIMESTAMP }],
    tokens: [{ kind: 'session', scope: 'write', expires_at: TIMESTAMP }],
    tags: [{ name: 'a', bookmark_count: 501 }],
  });
  expect(exported.bookmarks.map(({ url }: { url: string }) => url)).toEqual(bookmarks.map(({ url }) => url));
  expect(JSON.stringify(exported)).not.toContain(user.token.slice(-43));
  expectRefusal(await run('user export --email nobody@example.org'), /no user has this/);
});

describe.concurrent('user', () => {
  test('create prints the user; --premium makes it premium', async () => {
    expect(await responseOf('user create --email New.User@example.org')).toEqual({
      id: expect.any(Number),
      email: 'New.User@example.org',
      is_premium: false,
      created_at: TIMESTAMP,
    });
    expect(await responseOf('user create --email premium@example.org --premium')).toMatchObject({
      is_premium: true,
    });
  });

  test('create refuses an address that is in use, ignoring case (decision 22)', async () => {
    await service.user({ email: 'Taken@example.org' });
    expectRefusal(await run('user create --email tAKEN@example.org'), /e-mail address already exists/);
  });

  test('set changes the tier, and prints the user', async () => {
    const user = await service.user({ email: 'Tier@example.org' });
    expect(await responseOf('user set --email tier@example.org --premium true')).toEqual({
      id: user.id,
      email: 'Tier@example.org',
      is_premium: true,
      created_at: TIMESTAMP,
    });
    expect((await profile(user.token)).body.is_premium).toBe(true);
    await responseOf('user set --email TIER@example.org --premium false');
    expect((await profile(user.token)).body.is_premium).toBe(false);
    expectRefusal(await run('user set --email nobody@example.org --premium true'), /no user has this/);
    expectRefusal(await run('user set --email tier@example.org --premium maybe'), /true, false/);
  });

  test('show finds a user by address or by the id in a log line, and prints how much the user stores', async () => {
    const user = await service.user({ email: 'Shown@example.org' });
    await user.post('/bookmarks/add', { url: 'https://example.org/', tags: ['a', 'b'] });
    const shown = {
      id: user.id,
      email: 'Shown@example.org',
      is_premium: false,
      created_at: TIMESTAMP,
      suspended_at: null,
      bookmark_count: 1,
      tag_count: 2,
      token_count: 1,
    };
    expect(await responseOf('user show --email shown@EXAMPLE.org')).toEqual(shown);
    expect(await responseOf(`user show --id ${user.id}`)).toEqual(shown);
    expectRefusal(await run('user show --id 999999999'), /no user has this id/);
    expectRefusal(await run('user show --email nobody@example.org'), /no user has this e-mail/);
    expectRefusal(await run('user show'), /give either --email or --id/);
    expectRefusal(
      await run(`user show --id ${user.id} --email shown@example.org`),
      /give either --email or --id/,
    );
    expectRefusal(await run('user show --id 1;2'), /expected a user id/);
  });

  test('list goes through all users by id, in pages', async () => {
    const [first, last] = [await service.user(), await service.user()];
    const page = await responseOf(`user list --after ${first.id - 1} --limit 1`);
    expect(page).toEqual({
      users: [
        {
          id: first.id,
          email: first.email,
          is_premium: false,
          created_at: TIMESTAMP,
          suspended_at: null,
        },
      ],
      has_more: true,
    });
    const rest = await responseOf(`user list --after ${first.id} --limit 10000`);
    expect(rest.users.map(({ id }: { id: number }) => id)).toContain(last.id);
    expect(rest.users.map(({ id }: { id: number }) => id)).not.toContain(first.id);
    expect(rest.has_more).toBe(false);
    // The page is full, and it is the last one, unless another test has just added a user.
    await until(async () => {
      const { users } = await responseOf(`user list --after ${first.id} --limit 10000`);
      const full = await responseOf(`user list --after ${first.id} --limit ${users.length}`);
      return !full.has_more;
    });
    expectRefusal(await run('user list --limit 0'), /from 1 to 10000/);
  });

  test('delete removes the user with all data, and revokes the tokens', async () => {
    const user = await service.user({ email: 'Gone@example.org' });
    const other = await service.user();
    for (const owner of [user, other]) {
      await owner.post('/bookmarks/add', { url: 'https://example.org/', tags: ['a'] });
    }
    const code = await service.invite('gone@example.org');
    expect(await responseOf('user delete --email gone@example.org')).toEqual({ deleted: true });
    expect((await user.post('/bookmarks/list')).body.code).toBe('INVALID_TOKEN');
    expect((await service.post('/auth/invite', { code })).body.code).toBe('NOT_FOUND');
    for (const table of ['accounts', 'tokens', 'bookmarks', 'tags', 'imports']) {
      const left = await runOn(service.database.url, `select 1 from ${table} where user_id = ${user.id}`);
      expect(left, table).toEqual([]);
    }
    expect((await other.post('/bookmarks/list')).body.bookmarks).toHaveLength(1);
    expectRefusal(await run('user delete --email gone@example.org'), /no user has this/);
  });
});

describe.concurrent('invite', () => {
  test('create prints a code that works once and expires after 7 days, or after the given number of days', async () => {
    const invite = await responseOf('invite create --email invited@example.org');
    expect(invite).toEqual({
      code: expect.stringMatching(/^[A-Z0-9]{8}$/),
      email: 'invited@example.org',
      expires_at: TIMESTAMP,
    });
    expect(inDays(invite.expires_at)).toBeCloseTo(7, 1);
    const { status, body } = await service.post('/auth/invite', { code: invite.code });
    expect([status, body.user.email]).toEqual([200, 'invited@example.org']);
    const long = await responseOf('invite create --email invited@example.org --days 30');
    expect(inDays(long.expires_at)).toBeCloseTo(30, 1);
  });

  test.each(['0', '1.5', '36501'])('refuses --days %j', async (days) => {
    expectRefusal(await run(`invite create --email a@example.org --days ${days}`), /days/);
  });
});

describe.concurrent('token', () => {
  test('create prints an API token once; the token has the given scope and lasts until it is revoked', async () => {
    const { email } = await service.user();
    const made = await responseOf(`token create --email ${email} --scope read --name laptop`);
    expect(made).toEqual({
      token: expect.stringMatching(/^bka_\d+_[\w-]{43}$/),
      id: expect.any(String),
      kind: 'api',
      scope: 'read',
      name: 'laptop',
      app_name: null,
      created_at: TIMESTAMP,
      expires_at: null,
      last_used_at: null,
      last_four: made.token.slice(-4),
    });
    expect((await profile(made.token)).status).toBe(200);
    const denied = await service.post('/tags/create', { name: 'a' }, { token: made.token });
    expect(denied.body.code).toBe('PERMISSION_DENIED');
    const short = await responseOf(`token create --email ${email} --scope write --days 2`);
    expect(inDays(short.expires_at)).toBeCloseTo(2, 1);
    const allowed = await service.post('/tags/create', { name: 'a' }, { token: short.token });
    expect(allowed.status).toBe(200);
  });

  test('list prints the valid tokens without their secrets; revoke ends one of them', async () => {
    const session = await service.session();
    const made = await responseOf(`token create --email ${session.email} --scope write`);
    const { tokens, ...rest } = await responseOf(`token list --email ${session.email.toUpperCase()}`);
    expect(rest).toEqual({});
    expect(tokens).toEqual([
      {
        id: expect.any(String),
        kind: 'session',
        scope: 'write',
        name: '',
        app_name: null,
        created_at: TIMESTAMP,
        expires_at: TIMESTAMP,
        last_used_at: TIMESTAMP,
        last_four: session.token.slice(-4),
      },
      {
        id: made.id,
        kind: 'api',
        scope: 'write',
        name: '',
        app_name: null,
        created_at: TIMESTAMP,
        expires_at: null,
        last_used_at: null,
        last_four: made.token.slice(-4),
      },
    ]);
    expect(JSON.stringify(tokens)).not.toContain(made.token.slice(-43));

    expect(await responseOf(`token revoke --id ${made.id}`)).toEqual({ revoked: true });
    expect((await profile(made.token)).body.code).toBe('INVALID_TOKEN');
    expect((await profile(session.token)).status).toBe(200);
    expectRefusal(await run(`token revoke --id ${made.id}`), /no valid token has this id/);
    expect((await responseOf(`token list --email ${session.email}`)).tokens).toHaveLength(1);
  });

  test('create refuses an unknown user, an invalid scope and a missing scope', async () => {
    const { email } = await service.user();
    expectRefusal(await run('token create --email nobody@example.org --scope read'), /no user has this/);
    expectRefusal(await run(`token create --email ${email} --scope admin`), /read, write/);
    expectRefusal(await run(`token create --email ${email}`), /--scope/);
    expectRefusal(await run('token list --email nobody@example.org'), /no user has this/);
  });

  test.each(['1', '0-0'])('revoke refuses the id %j', async (id) => {
    expectRefusal(await run(`token revoke --id ${id}`), /no valid token has this id/);
  });
});

describe.concurrent('errors', () => {
  test.each(['', 'nobody', 'a b@example.org', `${'a'.repeat(250)}@example.org`])(
    'the e-mail address %j is refused',
    async (email) => {
      const outcome = await runHere(['admin', 'user', 'create', '--email', email], {
        DATABASE_URL: service.database.url,
      });
      expectRefusal(outcome, /--email/);
    },
  );

  test('an unknown command and an unknown option are refused', async () => {
    expectRefusal(await run('user rename'), /unknown command|rename/);
    expectRefusal(await run('user create --email a@example.org --admin'), /unknown option '--admin'/);
    expectRefusal(await run('user create'), /--email/);
  });

  test('a schema older than the code is refused, with the command to run', async () => {
    await using database = await createDatabase();
    await runOn(
      database.url,
      'delete from schema_migrations where version = (select max(version) from schema_migrations)',
    );
    expectRefusal(
      await run('user create --email a@example.org', { DATABASE_URL: database.url }),
      /main.ts migrate/,
    );
  });

  test('commands that revoke or delete run on any schema, older or newer', async () => {
    await using database = await createDatabase();
    const onDatabase = { DATABASE_URL: database.url };
    await run('user create --email a@example.org', onDatabase);
    const issue = async () =>
      JSON.parse((await run('token create --email a@example.org --scope read', onDatabase)).output);
    const [first, second] = [await issue(), await issue()];
    const newer = "insert into schema_migrations (version, name, works_with) values (9999, 'to-come', 9999)";
    await runOn(database.url, newer);
    expectRefusal(await run('user set --email a@example.org --premium true', onDatabase), /version 9999/);
    const listed = JSON.parse((await run('token list --email a@example.org', onDatabase)).output);
    expect(listed.tokens).toMatchObject([{ id: first.id }, { id: second.id }]);
    expect((await run(`token revoke --id ${first.id}`, onDatabase)).code).toBe(0);
    await runOn(database.url, 'delete from schema_migrations where version > 1');
    expect((await run(`token revoke --id ${second.id}`, onDatabase)).code).toBe(0);
    expect((await run('user delete --email a@example.org', onDatabase)).code).toBe(0);
    expect(await runOn(database.url, 'select from users')).toHaveLength(0);
  });
});

test.concurrent.each([
  ['', /user.*invite.*token/s],
  ['user create', /--email.*--premium/s],
  ['invite create', /--email.*--days/s],
  ['token', /create.*list.*revoke/s],
  ['token create', /--email.*--scope.*--name.*--days/s],
  ['token revoke', /--id/],
])('the help of admin %s describes its arguments, and needs no database', async (command, text) => {
  const args = ['admin', ...command.split(' ').filter(Boolean), '--help'];
  const { code, output, errors } = await runHere(args, { DATABASE_URL: 'nonsense' });
  expect({ code, errors }).toEqual({ code: 0, errors: '' });
  expect(output).toMatch(text);
});

test('a database that cannot be reached is named, and reported in one line', async () => {
  const outcome = await runHere(['admin', 'token', 'list', '--email', 'a@example.org'], {
    DATABASE_URL: 'postgres://nobody:geheim@127.0.0.1:1/none',
  });
  expectRefusal(outcome, /^Database: 127\.0\.0\.1:1\/none\n[^\n]*ECONNREFUSED[^\n]*\n$/);
  expect(outcome.errors).not.toContain('geheim');
});

describe.concurrent('as a process', () => {
  const runProcess = (args: string, env: Record<string, string>): Promise<Outcome> =>
    runCommand(['admin', ...args.split(' ')], env);

  test('a command prints its result and exits; an error message goes to standard error only', async () => {
    const env = { DATABASE_URL: service.database.url };
    const made = readOutput(await runProcess('user create --email process@example.org', env));
    expect(made).toMatchObject({ email: 'process@example.org' });
    expectRefusal(await runProcess('user create --email process@example.org', env), /already exists/);
    expectRefusal(await runProcess('user create', env), /--email/);
  });

  test.for<[command: string, argsOf: (email: string, env: Record<string, string>) => Promise<string>]>([
    [
      'token revoke',
      async (email, env) => {
        const { tokens } = await responseOf(`token list --email ${email}`, env);
        return `token revoke --id ${tokens[0].id}`;
      },
    ],
    ['user delete', async (email) => `user delete --email ${email}`],
  ])('%s ends held polls with 401 at once, through Redis', async ([, argsOf], { expect }) => {
    const redis = await openRedis();
    await using stack = new AsyncDisposableStack();
    stack.defer(() => redis.stop());
    const shared = stack.use(await startService({ redisAddress: parseRedisAddress(redis.url) }));
    const user = await shared.user();
    const response = user.post('/bookmarks/sync', { wait: true });
    await expect.poll(() => shared.context.coordination.notifier.held).toBe(1);
    const env = { DATABASE_URL: shared.database.url, REDIS_URL: redis.url };
    readOutput(await runProcess(await argsOf(user.email, env), env));
    expect((await response).body.code).toBe('INVALID_TOKEN');
  });
});
