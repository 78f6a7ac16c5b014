-- works-with: 4
-- Creates the tables of imports. `imports` has a row for each import. A large import is staged: its body is stored in
-- Postgres while it arrives, and a worker runs the import. A small import runs in its request, which adds the row just
-- before it writes the bookmarks. The states of an import:
-- - `receiving`: the body of a staged import arrives.
-- - `queued`: the body is complete. A worker may run the staged import. The request of a small import runs it now.
-- - `done`: the import ran or was refused, and `result` is its response.
-- - `cancelled`: the import never runs.
create table imports (
  user_id bigint,
  id uuid,
  -- whether the body is staged, and a worker runs the import
  is_staged boolean not null,
  state text collate "C" not null default 'receiving',
  -- the bytes that count against the cap of staged bytes: the announced length while the body arrives, then the length
  -- of the body plus the length of each batch in `import_batches`
  bytes bigint not null default 0,
  created_at timestamptz not null default now(),
  -- when the state last changed
  touched_at timestamptz not null default now(),
  -- when the sweep deletes the row: a minute after the latest bytes of an upload, a day after the import was queued, or
  -- an hour after its end. An import with an idempotency key is kept for 25 hours after its end, because
  -- `idempotency_keys` names it for 24 hours.
  expires_at timestamptz not null default now() + interval '1 minute',
  -- the response as JSON text: `{"imported":…,"skipped":…}` without its errors, or `{"error":…,"code":…}`; null until
  -- the state is `done`
  result text,
  -- the errors of invalid entries: JSON objects in UTF-8, separated by commas, exactly as in the response. Null if there
  -- are none. Also null if there is no idempotency key, and the response was sent or the request has the errors in
  -- memory.
  errors bytea,
  -- the earlier import with the same idempotency key, if its result is the result of this one; its row has the errors
  repeats uuid,
  -- the hash of the request's token; if the token is revoked, the import changes nothing (docs/contract.md, decision
  -- 34)
  token_hash bytea,
  -- the idempotency key and the hash of the request; like the token, both are set when the import is queued
  idempotency_key text collate "C",
  request_hash bytea,
  -- the number of attempts to run the import; see `claim_import`
  attempts smallint not null default 0,
  -- the lease of the process that runs the import now, and when the lease ends; both null if none does. The lease of a
  -- small import never ends, because only its request has the body.
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
create unique index imports_one_at_a_time on imports (user_id) where is_staged and state in ('receiving', 'queued');

create index imports_expires_at on imports (expires_at);

-- Postgres can read a part of a value alone only if the value is not compressed.
alter table imports alter column errors set storage external;
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

-- Postgres does not compress the chunks. They are read once and deleted, so compression would cost more than it saves.
alter table import_chunks alter column bytes set storage external;
alter table import_chunks alter column user_id set statistics 0;

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
  -- a JSON array with one object for each entry, in the same order as the values of the two columns above. It is not
  -- parsed when it is stored.
  entries text not null,
  -- the errors of invalid entries: JSON objects in UTF-8, separated by commas
  errors bytea not null,
  constraint import_batches_pkey primary key (user_id, import_id, position),
  constraint import_batches_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

alter table import_batches alter column entries set storage external;
alter table import_batches alter column tag_sets set storage external;
alter table import_batches alter column errors set storage external;
alter table import_batches alter column user_id set statistics 0;
