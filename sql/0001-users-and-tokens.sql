-- works-with: 1
-- Creates the tables of users and their accounts, tokens, sessions and passkeys, and the audit of operators' commands.
-- In every table with users' data (`accounts`, `tokens`, `bookmarks`, `imports` and others), each key begins with
-- `user_id`. So these tables can be distributed over several servers by user, and one server then holds all rows of a
-- user. The tables `users`, `identities` and `invites` are not distributed, because they say which users exist.

do $$
begin
  if getdatabaseencoding() <> 'UTF8' then
    raise exception 'the database must have the encoding UTF8';
  end if;
end
$$;

-- A counter is a number that is never negative. This rule is the check of a domain, because Postgres caches such a
-- check. If each table had the check instead, every statement that writes to the table would parse the check again
-- (docs/decisions/0092-cost-of-an-add.md).
create domain counter as bigint constraint counter_not_negative check (value >= 0);

create sequence users_id_seq as bigint maxvalue 9007199254740991;

create table users (
  id bigint default nextval('users_id_seq'),
  email text collate "C" not null,
  -- the normalized address; addresses that differ only in case have the same key
  email_key text collate "C" not null,
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  constraint users_pkey primary key (id),
  constraint users_email_unique unique (email_key)
);

-- A row is a user's account at an OpenID Connect provider. When a person signs in through the provider, this table says
-- which user the person is.
create table identities (
  issuer text collate "C",
  subject text collate "C",
  user_id bigint not null,
  -- the address that the provider gave when the identity was linked; null if it gave none
  email text collate "C",
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  constraint identities_pkey primary key (issuer, subject),
  constraint identities_user foreign key (user_id) references users (id) on delete cascade
);

create index identities_user_id on identities (user_id);

create table invites (
  code text collate "C" not null,
  email text collate "C" not null,
  email_key text collate "C" not null,
  expires_at timestamptz not null,
  constraint invites_pkey primary key (code),
  constraint invites_code_format check (code ~ '^[A-Z0-9]{8}$')
);

create index invites_expires_at on invites (expires_at);

-- One row for each user. Every function that writes a user's bookmarks or tags locks the user's row here before it
-- takes an id. So the ids of one user become visible in ascending order, and the counters in the row make caps exact.
--
-- Every add updates the row. The fill factor leaves half of each page free, so that Postgres can store the new version
-- of a row on the same page. If it does so, the update changes no index (a HOT update).
create table accounts (
  user_id bigint,
  is_premium boolean not null default false,
  bookmark_count counter not null default 0,
  tag_count counter not null default 0,
  -- at least the number of bookmarks that are in no block of `search_blocks` yet. Adds and imports raise it, deletions
  -- do not lower it, and `pack_texts` sets it to the exact number.
  unpacked integer not null default 0,
  -- the number of `replace` imports so far; an export is aborted if this number changes while the export runs
  generation bigint not null default 0,
  -- the size in bytes of all responses that are kept for the user's idempotency keys
  kept_bytes counter not null default 0,
  -- the number of the user's rows in `trash`
  trash_count counter not null default 0,
  -- The revision of the last change of the user's data. A function assigns revisions while it holds the lock on this
  -- row, so revisions ascend. Like ids, they are derived from the time (see `min_id_now`). So revisions that are
  -- assigned after a restore of the database are higher than all earlier ones.
  last_change bigint not null default 0,
  -- The highest id that `raise_high_water_mark` has recorded. All later ids of the user are higher, also on another
  -- node.
  id_floor bigint not null default 0,
  -- The changes up to this revision are deleted. A reader that has not received them must start over.
  changes_floor bigint not null default 0,
  -- null if the account is not suspended
  suspended_at timestamptz,
  constraint accounts_pkey primary key (user_id)
) with (fillfactor = 50);

create sequence tokens_id_seq as bigint maxvalue 9007199254740991;

-- Session tokens and API tokens. Of a token's secret part, only the SHA-256 and the last four characters are stored.
-- When a token is revoked, its row is deleted.
create table tokens (
  user_id bigint,
  token_hash bytea,
  id bigint not null default nextval('tokens_id_seq'),
  kind text collate "C" not null,
  scope text collate "C" not null,
  name text collate "C" not null default '',
  -- the normalized name
  name_key text collate "C" not null default '',
  -- the last four characters of the secret, by which people recognize the token
  last_four text collate "C" not null default '',
  -- the app that a session was opened for; null for all other tokens
  app_name text collate "C",
  -- the program that opened a session, for example `Firefox on Linux`; null if the program sent no name
  client text collate "C",
  -- for a session: the time when the person authenticated; null if an invite opened the session
  authenticated_at timestamptz,
  -- accurate to 15 minutes; null if the token has not been used yet
  last_used_at timestamptz,
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  expires_at timestamptz not null default 'infinity',
  -- The original expiration of the token of a suspended account; null if the account is not suspended. During the
  -- suspension, `expires_at` is `-infinity`. So every check refuses the token without reading `accounts`.
  suspended_expires_at timestamptz,
  constraint tokens_pkey primary key (user_id, token_hash),
  constraint tokens_id_unique unique (user_id, id),
  constraint tokens_account foreign key (user_id) references accounts (user_id) on delete cascade,
  constraint tokens_hash_length check (octet_length(token_hash) = 32),
  constraint tokens_kind check (kind in ('session', 'api')),
  constraint tokens_scope check (scope in ('read', 'write'))
-- The fill factor leaves a fifth of each page free, so that an update of `last_used_at` changes no index.
) with (fillfactor = 80);

-- Postgres keeps no statistics of `user_id` in this table or in any later table that is distributed by user. So
-- Postgres expects the same share of the rows for every user. With statistics, it would expect almost no rows of a user
-- who is missing from the statistics. It might then choose a plan that reads all rows of that user
-- (docs/decisions/0093-plans-that-stay-good.md).
alter table tokens alter column user_id set statistics 0;

create index tokens_expires_at on tokens (expires_at) where expires_at < 'infinity';

-- The responses to requests with an `Idempotency-Key`. They are kept for 24 hours. A response is written in the
-- transaction of its request. So a repeat of the request finds both the response and the change, or neither.
create table idempotency_keys (
  user_id bigint,
  key text collate "C",
  -- SHA-256 of the path and the body
  request_hash bytea not null,
  -- JSON text; for an import, without its errors
  response text not null,
  -- the import whose response this is, and whose row in `imports` has the errors; null for other requests
  import_id uuid,
  -- the number of bytes that this response adds to `accounts.kept_bytes`
  bytes bigint not null,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (user_id, key),
  constraint idempotency_keys_account foreign key (user_id) references accounts (user_id) on delete cascade
);

create index idempotency_keys_created_at on idempotency_keys (created_at);

alter table idempotency_keys alter column user_id set statistics 0;

-- Passkeys are WebAuthn credentials with which a user signs in.
create table passkeys (
  user_id bigint,
  -- in base64url, as browsers send it
  credential_id text collate "C",
  -- the key in COSE format
  public_key bytea not null,
  -- the number of signatures that the authenticator has made; always 0 if it does not count them
  counter bigint not null,
  -- the program that created the passkey, for example `Firefox on Linux`; null if it is unknown
  name text collate "C",
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  -- null if the passkey has not been used yet
  last_used_at timestamptz,
  constraint passkeys_pkey primary key (user_id, credential_id),
  constraint passkeys_account foreign key (user_id) references accounts (user_id) on delete cascade
);

alter table passkeys alter column user_id set statistics 0;

create sequence audit_id_seq as bigint maxvalue 9007199254740991;

-- One row for each command of an operator, written before the command runs.
create table audit (
  id bigint default nextval('audit_id_seq'),
  at timestamptz not null default now(),
  -- null if the operator gave no name
  operator text collate "C",
  -- for example `user suspend`
  action text collate "C" not null,
  -- the options of the command, for example `--email ann@example.org`; never a secret
  object text collate "C" not null,
  -- null while the command is running; also null if the command's process ended before it recorded the outcome
  outcome text collate "C",
  constraint audit_pkey primary key (id),
  constraint audit_outcome check (outcome in ('done', 'failed'))
);
