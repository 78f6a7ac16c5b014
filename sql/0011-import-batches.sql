-- works-with: 11
-- Checked entries of staged imports travel as JSON, in a batch with their errors.

-- The worker that prepares an import fills this table, and `import_bookmarks` empties it. After a crash of the server it is empty.
create unlogged table import_batches (
  user_id bigint,
  import_id uuid,
  position integer,
  url_keys uuid[] not null,
  -- for each entry: the places of its tags among the tags of the import, from 1, with blanks between
  tag_sets text[] not null,
  -- a JSON array of the entries, in step with the columns above
  entries bytea not null,
  -- errors of other entries, as JSON with commas between
  errors text collate "C" not null,
  constraint import_batches_pkey primary key (user_id, import_id, position),
  constraint import_batches_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

alter table import_batches alter column entries set storage external;
alter table import_batches alter column tag_sets set storage external;
alter table import_batches alter column user_id set statistics 0;
