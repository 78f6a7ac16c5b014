-- works-with: 4
-- Creates the tables of large imports. `imports` has a row for each large import. The row is written while the body
-- arrives. A sweep deletes the row about an hour after the import's end. The states of an import:
-- - `receiving`: the body arrives.
-- - `queued`: the body is complete, and a worker may run the import.
-- - `done`: the import ran or was refused, and `result` is its response.
-- - `cancelled`: the import never runs.
create table imports (
  user_id bigint,
  id uuid,
  state text collate "C" not null default 'receiving',
  -- the bytes that count against the cap of staged bytes: the announced length while the body arrives, then the length
  -- of the body plus the length of each batch in `import_batches`
  bytes bigint not null,
  created_at timestamptz not null default now(),
  -- set when bytes arrive and when the state changes; if this time is old during `receiving`, the upload has stopped
  touched_at timestamptz not null default now(),
  -- the response as JSON text: `{"imported":…,"skipped":…}` without its errors, or `{"error":…,"code":…}`; null until
  -- the state is `done`
  result text,
  -- the size in bytes of the errors in `import_errors`
  error_bytes bigint not null default 0,
  -- the hash of the request's token; if the token is revoked, the import changes nothing (docs/contract.md, decision
  -- 34)
  token_hash bytea,
  -- the idempotency key and the hash of the request, both set when the import is queued
  idempotency_key text collate "C",
  request_hash bytea,
  -- the number of attempts to run the import; see `claim_import`
  attempts smallint not null default 0,
  -- the lease of the worker that runs the import now, and when the lease ends; both null if no worker runs the import
  lease_id uuid,
  lease_until timestamptz,
  -- the trace that the request belongs to, as a W3C `traceparent`
  trace_parent text collate "C",
  constraint imports_pkey primary key (user_id, id),
  constraint imports_account foreign key (user_id) references accounts (user_id) on delete cascade,
  constraint imports_state check (state in ('receiving', 'queued', 'done', 'cancelled')),
  constraint imports_lease check ((lease_id is null) = (lease_until is null)),
  constraint imports_result check ((state = 'done') = (result is not null))
);

-- A user can have only one large import in progress (docs/contract.md, decision 21).
create unique index imports_one_at_a_time on imports (user_id) where state in ('receiving', 'queued');

create index imports_touched_at on imports (touched_at);

alter table imports alter column user_id set statistics 0;

-- The unchanged body of a large import, in chunks. It is stored as bytes, because the type `text` accepts neither
-- U+0000 nor invalid UTF-8.
create table import_chunks (
  user_id bigint,
  import_id uuid,
  position integer,
  bytes bytea not null,
  constraint import_chunks_pkey primary key (user_id, import_id, position),
  constraint import_chunks_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- The errors of a large import. A row holds the JSON text of several errors, exactly as in the response. `position`
-- gives the order of the rows. The rows are deleted once the response has been sent.
create table import_errors (
  user_id bigint,
  import_id uuid,
  position integer,
  errors text collate "C" not null,
  constraint import_errors_pkey primary key (user_id, import_id, position),
  constraint import_errors_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- Postgres does not compress the chunks. They are read once and deleted, so compression would cost more than it saves.
alter table import_chunks alter column bytes set storage external;
alter table import_chunks alter column user_id set statistics 0;
alter table import_errors alter column user_id set statistics 0;

-- Batches of large imports. A batch holds valid entries of an import as JSON, and the errors of invalid entries.
--
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
