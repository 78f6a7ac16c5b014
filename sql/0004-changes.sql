-- works-with: 3
-- What `/bookmarks/changes` reads beside bookmarks and tags, and what keeps ids rising through restores.

-- Numbers of changes rise for each user, under the lock of the account's row. They are made from time like ids, see
-- `min_id_now`, so that a number given after a restore lies above every number given before it.
alter table accounts
  add column last_change bigint not null default 0,
  -- the highest id that the user was given ahead of time: later ones lie above it, at whichever node
  add column id_floor bigint not null default 0,
  -- changes up to this number are no longer kept: who is behind it begins anew
  add column changes_floor bigint not null default 0;

-- One row for each bookmark or tag that was edited, renamed or deleted: the last change counts. Whether it is gone is told
-- by its absence from its own table, in the same snapshot. New ones are found by their ids and have no row here, so that
-- adds and imports cost nothing more.
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

-- The history that this database tells, by the identity of the database that told it last. A restored dump, a promoted
-- standby and a point in time gone back to are other histories: their epoch is another one, and cursors of the one before
-- begin anew. A sharded database has a history for each node.
create table epoch (
  -- the group of the node; 0 where the database is not sharded
  node integer default 0,
  -- made from time: no epoch comes twice, at no node
  number bigint not null,
  system_identifier bigint not null,
  database_id bigint not null,
  timeline text collate "C" not null,
  -- when the server that was last found to be this one was started, and this table's file there, in whose path the database
  -- is: as long as both and the timeline stay, nothing else need be compared
  server_started_at timestamptz not null,
  file_path text collate "C" not null,
  constraint epoch_pkey primary key (node)
);
