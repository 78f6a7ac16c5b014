-- works-with: 5
-- Accounts that an operator has suspended, and what operators did.

-- null: not suspended
alter table accounts add column suspended_at timestamptz;

-- When the token of a suspended account expires. Its `expires_at` is `-infinity` meanwhile, so every check of a token
-- refuses it without a look at the account.
alter table tokens add column suspended_expires_at timestamptz;

create sequence audit_id_seq as bigint maxvalue 9007199254740991;

-- One row for each command of an operator, written before the command runs.
create table audit (
  id bigint default nextval('audit_id_seq'),
  at timestamptz not null default now(),
  -- null: the operator gave no name
  operator text collate "C",
  -- such as `user suspend`
  action text collate "C" not null,
  -- the options that were given, such as `--email ann@example.org`; never a secret
  object text collate "C" not null,
  -- null: the command is running, or its process ended before it could say
  outcome text collate "C",
  constraint audit_pkey primary key (id),
  constraint audit_outcome check (outcome in ('done', 'failed'))
);

-- It now returns `suspended_at` too.
drop function if exists find_user(bigint, text);
