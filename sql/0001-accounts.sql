-- works-with: 1
-- The first tables. Every key of a table with users' data (accounts, tokens, bookmarks, tags, imports) begins with
-- `user_id`, and every statement names the user by value for each of these tables. So the rows of one user are stored
-- together, and the tables can be distributed by user. The directory (users, identities, invites) is the exception:
-- it says which users exist.

do $$
begin
  if getdatabaseencoding() <> 'UTF8' then
    raise exception 'the database must have the encoding UTF8';
  end if;
end
$$;

-- The type of counters. It is a domain, because Postgres caches the check of a domain, but parses the check of a
-- table again in every statement that writes the table (docs/decisions/0092-cost-of-an-add.md).
create domain counter as bigint constraint counter_not_negative check (value >= 0);

create sequence users_id_seq as bigint maxvalue 9007199254740991;

create table users (
  id bigint default nextval('users_id_seq'),
  email text collate "C" not null,
  -- the e-mail address, normalized by the service, so that it is unique ignoring case
  email_key text collate "C" not null,
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  constraint users_pkey primary key (id),
  constraint users_email_unique unique (email_key)
);

-- A user's account at an OpenID Connect provider. A login by the provider finds the user here.
create table identities (
  issuer text collate "C",
  subject text collate "C",
  user_id bigint not null,
  -- as the provider gave it when the identity was linked
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

-- Every writer of a user's bookmarks and tags locks this row before it draws an id. So the ids of one user become
-- visible in ascending order, and the counts in this row make caps exact. Every add updates this row. Half of each page
-- is left free for the new versions of its rows, so that these updates change no index (HOT).
create table accounts (
  user_id bigint,
  is_premium boolean not null default false,
  bookmark_count counter not null default 0,
  tag_count counter not null default 0,
  -- how many bookmarks are in no search block yet, see `search_blocks`
  unpacked integer not null default 0,
  -- the number of `replace` imports; an export is aborted when it changes
  generation bigint not null default 0,
  -- the bytes of all responses that are kept for the user's idempotency keys
  kept_bytes counter not null default 0,
  -- Unused since migration 5, which drops the next three columns.
  stale_tags bigint[],
  tags_fresh_to bigint not null default 0,
  tags_refreshed_at timestamptz not null default '-infinity',
  constraint accounts_pkey primary key (user_id)
) with (fillfactor = 50);

create index accounts_stale_tags on accounts (user_id) where stale_tags is not null;

create sequence tokens_id_seq as bigint maxvalue 9007199254740991;

-- Only the SHA-256 of a token's secret part is stored. Revoking a token deletes its row.
create table tokens (
  user_id bigint,
  token_hash bytea,
  id bigint not null default nextval('tokens_id_seq'),
  kind text collate "C" not null,
  scope text collate "C" not null,
  name text collate "C" not null default '',
  -- the name, normalized by the service
  name_key text collate "C" not null default '',
  -- the last characters of the secret, so that people recognize the token
  last_four text collate "C" not null default '',
  -- the app that a session was made for; null for a browser and an invite exchange
  app_name text collate "C",
  -- of a session: when the person authenticated
  authenticated_at timestamptz,
  -- accurate to 15 minutes; null: not used yet
  last_used_at timestamptz,
  created_at timestamptz not null default date_trunc('milliseconds', now()),
  expires_at timestamptz not null default 'infinity',
  constraint tokens_pkey primary key (user_id, token_hash),
  constraint tokens_id_unique unique (user_id, id),
  constraint tokens_account foreign key (user_id) references accounts (user_id) on delete cascade,
  constraint tokens_hash_length check (octet_length(token_hash) = 32),
  constraint tokens_kind check (kind in ('session', 'api')),
  constraint tokens_scope check (scope in ('read', 'write'))
-- leaves room in each page, so that recording a use changes no index
) with (fillfactor = 80);

-- Here and in every later table that is distributed by user, Postgres keeps no statistics of `user_id`. So it always
-- expects the same share of the rows for a user. With statistics, it would expect no rows of a user who is missing from
-- them. It might then choose a plan that reads all of the user's rows (docs/decisions/0093-plans-that-stay-good.md).
alter table tokens alter column user_id set statistics 0;

create index tokens_expires_at on tokens (expires_at) where expires_at < 'infinity';

-- Responses to requests with an `Idempotency-Key`, kept for 24 hours. They are written in the transaction of the
-- request, so that a repeat finds both the response and the change, or neither.
create table idempotency_keys (
  user_id bigint,
  key text collate "C",
  -- SHA-256 of the path and the body
  request_hash bytea not null,
  -- JSON text; the errors of an import are stored separately
  response text not null,
  -- its share of `accounts.kept_bytes`
  bytes bigint not null,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (user_id, key),
  constraint idempotency_keys_account foreign key (user_id) references accounts (user_id) on delete cascade
);

create index idempotency_keys_created_at on idempotency_keys (created_at);

alter table idempotency_keys alter column user_id set statistics 0;

-- The errors of an import with an idempotency key: JSON text as in the response, several errors per row, in order.
create table idempotency_errors (
  user_id bigint,
  key text collate "C",
  position integer,
  errors text collate "C" not null,
  constraint idempotency_errors_pkey primary key (user_id, key, position),
  constraint idempotency_errors_key foreign key (user_id, key) references idempotency_keys (user_id, key) on delete cascade
);

alter table idempotency_errors alter column user_id set statistics 0;
