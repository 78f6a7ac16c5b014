-- works-with: 3
-- Creates the tables of `/bookmarks/changes`.

-- One row for each bookmark or tag that was edited, renamed or deleted. `number` is the revision of its last change. If
-- the object is no longer in `bookmarks` or `tags`, it was deleted. Readers find new objects by their ids, so an add
-- writes no row here.
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

-- The present epoch of each node's database. A restore of a dump, the promotion of a standby or a point-in-time
-- recovery may undo changes that readers have received, so a new epoch begins. Readers with a cursor of an earlier
-- epoch must start over. A database that is not sharded has one row.
create table epoch (
  -- the number of the node's Citus group; 0 if the database is not sharded
  node integer default 0,
  -- the epoch; it is derived from the time and the node, so no two epochs have the same number
  number bigint not null,
  system_identifier bigint not null,
  database_id bigint not null,
  timeline text collate "C" not null,
  -- The start time of the server and the path of this table's file, as they were when `current_epoch` last compared the
  -- identity of the database. The path contains the id of the database. While the start time, the path and the timeline
  -- stay the same, the identity need not be compared again.
  server_started_at timestamptz not null,
  file_path text collate "C" not null,
  constraint epoch_pkey primary key (node)
);
