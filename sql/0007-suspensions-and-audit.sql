-- works-with: 5
-- Suspended accounts, and the commands of operators.

-- null: not suspended
alter table accounts add column suspended_at timestamptz;

-- When the token of a suspended account expires. Meanwhile `expires_at` is `-infinity`, so every check refuses the
-- token without reading the account.
alter table tokens add column suspended_expires_at timestamptz;

create sequence audit_id_seq as bigint maxvalue 9007199254740991;

-- One row for each command of an operator, written before the command runs.
create table audit (
  id bigint default nextval('audit_id_seq'),
  at timestamptz not null default now(),
  -- null: the operator gave no name
  operator text collate "C",
  -- for example `user suspend`
  action text collate "C" not null,
  -- the given options, for example `--email ann@example.org`; never a secret
  object text collate "C" not null,
  -- null: the command is running, or its process ended before it recorded the outcome
  outcome text collate "C",
  constraint audit_pkey primary key (id),
  constraint audit_outcome check (outcome in ('done', 'failed'))
);

-- `find_user` now returns `suspended_at` too.
drop function if exists find_user(bigint, text);
