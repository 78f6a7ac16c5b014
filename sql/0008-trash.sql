-- works-with: 5
-- Adds the trash. It keeps deleted bookmarks until they are restored, deleted for good, or too old.

-- Like `bookmarks`, this table has no foreign key to `accounts`. `delete_user` deletes the user's rows from it.
create table trash (
  user_id bigint,
  -- the id that the bookmark had before it was deleted
  id bigint,
  deleted_at timestamptz not null,
  url_key uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  host text collate "C" not null,
  search_text text collate "C" not null,
  url text collate "C" not null,
  title text collate "C" not null,
  comment text collate "C" not null,
  -- the tags that the bookmark had when it was deleted, as JSON text
  tags text collate "C" not null,
  constraint trash_pkey primary key (user_id, id)
);

alter table trash alter column user_id set statistics 0;
alter table trash alter column search_text set storage external;

create index trash_newest on trash (user_id, deleted_at, id);
create index trash_deleted_at on trash (deleted_at);

alter table accounts add column trash_count counter not null default 0;
