-- works-with: 11
-- Stores the valid entries of staged imports as JSON, in batches with the errors of the invalid entries.

-- The worker that prepares an import fills this table, and the end of the import deletes its rows (`end_import`). The
-- table is unlogged, except on a cluster, so a crash of the server empties it.
create unlogged table import_batches (
  user_id bigint,
  import_id uuid,
  position integer,
  url_keys uuid[] not null,
  -- for each entry: the positions of its tags in the import's list of tags, from 1, separated by blanks
  tag_sets text[] not null,
  -- a JSON array of the entries, in the same order as the columns above
  entries bytea not null,
  -- errors of invalid entries: JSON objects, separated by commas
  errors text collate "C" not null,
  constraint import_batches_pkey primary key (user_id, import_id, position),
  constraint import_batches_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

alter table import_batches alter column entries set storage external;
alter table import_batches alter column tag_sets set storage external;
alter table import_batches alter column user_id set statistics 0;
