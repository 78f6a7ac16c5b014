-- works-with: 3
-- Tables and columns for `/bookmarks/changes`, and a floor that keeps ids rising after a restore.

-- Revisions rise for each user, under the lock of the account's row. Like ids they are derived from time (see
-- `min_id_now`), so a revision given after a restore is higher than every revision given before it.
alter table accounts
  add column last_change bigint not null default 0,
  -- the highest id that the user was given ahead of time: later ids are higher, on any node
  add column id_floor bigint not null default 0,
  -- changes up to this revision are no longer kept: a reader at an earlier position starts over
  add column changes_floor bigint not null default 0;

-- One row for each bookmark or tag that was edited, renamed or deleted, with its last revision. A deleted object is one
-- that its own table lacks in the same snapshot. New objects are found by their ids and have no row here, so adds and
-- imports cost nothing more.
create table changes (
  user_id bigint,
  kind text collate "C",
  object_id bigint,
  number bigint not null,
  changed_at timestamptz not null default now(),
  constraint changes_pkey primary key (user_id, kind, object_id),
  constraint changes_account foreign key (user_id) references accounts (user_id) on delete cascade,
  constraint changes_kind check (kind in ('bookmark', 'tag'))
) with (fillfactor = 80);

alter table changes alter column user_id set statistics 0;

create unique index changes_number on changes (user_id, number);
create index changes_changed_at on changes (changed_at);

-- Identifies the history of this database. A restored dump, a promoted standby and a point-in-time recovery are other
-- histories: they get another epoch, and cursors of earlier epochs start over. A sharded database has a history for
-- each node.
create table epoch (
  -- the group of the node; 0 if the database is not sharded
  node integer default 0,
  -- derived from time: no epoch is ever used twice, on any node
  number bigint not null,
  system_identifier bigint not null,
  database_id bigint not null,
  timeline text collate "C" not null,
  -- The start time of the server and this table's file, when the identity was last compared. The file's path contains
  -- the database. While both and the timeline stay the same, nothing else needs to be compared.
  server_started_at timestamptz not null,
  file_path text collate "C" not null,
  constraint epoch_pkey primary key (node)
);
