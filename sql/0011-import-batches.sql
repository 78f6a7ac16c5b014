-- works-with: 11
-- Adds batches of large imports. A batch holds valid entries of an import as JSON, and the errors of invalid entries.

-- A worker fills this table when it prepares an import, and `end_import` deletes the rows. The table is unlogged,
-- except on a Citus cluster. If a crash of the server empties the unlogged table, a worker prepares the import again.
create unlogged table import_batches (
  user_id bigint,
  import_id uuid,
  position integer,
  url_keys uuid[] not null,
  -- one value for each entry: the positions of its tags in the import's list of tags (`p_tag_names` of
  -- `import_bookmarks`), counted from 1 and separated by blanks
  tag_sets text[] not null,
  -- a JSON array in UTF-8, with one object for each entry, in the same order as the values of the two columns above
  entries bytea not null,
  -- the errors of invalid entries: JSON objects, separated by commas
  errors text collate "C" not null,
  constraint import_batches_pkey primary key (user_id, import_id, position),
  constraint import_batches_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

alter table import_batches alter column entries set storage external;
alter table import_batches alter column tag_sets set storage external;
alter table import_batches alter column user_id set statistics 0;
