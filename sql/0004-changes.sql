-- works-with: 3
-- Tables and columns for `/bookmarks/changes`, and a floor that keeps ids rising when a user moves to another node.

-- The revisions of a user ascend, because a writer assigns them while it holds the lock on the account's row. Like ids,
-- they are derived from time (see `min_id_now`). So a revision that is assigned after a restore is higher than all
-- revisions that were assigned before it.
alter table accounts
  add column last_change bigint not null default 0,
  -- the highest id of the user that was ahead of time (see `raise_high_water_mark`); all later ids are higher
  add column id_floor bigint not null default 0,
  -- changes up to this revision are no longer kept: a reader at an earlier position starts over
  add column changes_floor bigint not null default 0;

-- One row for each bookmark or tag that was edited, renamed or deleted, with its last revision. If `bookmarks` or
-- `tags` lacks the object in the same snapshot, the object was deleted. Readers find new objects by their ids, so adds
-- write no rows here.
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
  -- The server's start time and the path of this table's file when the identity was last compared. The path contains
  -- the database's id. If both and the timeline are still the same, nothing else is compared.
  server_started_at timestamptz not null,
  file_path text collate "C" not null,
  constraint epoch_pkey primary key (node)
);
