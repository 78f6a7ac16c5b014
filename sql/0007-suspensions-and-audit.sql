-- works-with: 5
-- Adds suspensions of accounts, and the audit of operators' commands.

-- null if the account is not suspended
alter table accounts add column suspended_at timestamptz;

-- The original expiration of the token of a suspended account; null if the account is not suspended. During the
-- suspension, `expires_at` is `-infinity`. So every check refuses the token without reading `accounts`.
alter table tokens add column suspended_expires_at timestamptz;

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

-- `find_user` has a new result column, `suspended_at`. Postgres cannot change the result of a function, so this
-- migration drops the function first.
drop function if exists find_user(bigint, text);
