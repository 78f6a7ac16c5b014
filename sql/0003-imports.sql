-- works-with: 3
-- A large import, from the first bytes of its body to its response. Its states:
-- - `receiving`: the body arrives.
-- - `queued`: the body is complete, and a worker may run the import.
-- - `done`: the import ran or was refused, and `result` is its response.
-- - `cancelled`: the import never runs.
create table imports (
  user_id bigint,
  id uuid,
  state text collate "C" not null default 'receiving',
  -- counts against the cap of staged bytes: the announced length while the body arrives, then the length of the body,
  -- to which each batch in `import_batches` adds its length
  bytes bigint not null,
  created_at timestamptz not null default now(),
  -- updated while bytes arrive; if it is old, the replica that received the upload has died
  touched_at timestamptz not null default now(),
  -- the response as JSON text: `{"imported":…,"skipped":…}` without its errors, or `{"error":…,"code":…}`
  result text,
  -- bytes of its errors in `import_errors`
  error_bytes bigint not null default 0,
  -- the token of the request; once it is revoked, the import changes nothing (decision 34)
  token_hash bytea,
  -- the key and the hash of the request, set when the import is queued
  idempotency_key text collate "C",
  request_hash bytea,
  -- how many workers have begun the import, and the lease of the worker that runs it now
  attempts smallint not null default 0,
  lease_id uuid,
  lease_until timestamptz,
  -- the trace that the request belongs to
  trace_parent text collate "C",
  constraint imports_pkey primary key (user_id, id),
  constraint imports_account foreign key (user_id) references accounts (user_id) on delete cascade,
  constraint imports_state check (state in ('receiving', 'queued', 'done', 'cancelled')),
  constraint imports_lease check ((lease_id is null) = (lease_until is null)),
  constraint imports_result check ((state = 'done') = (result is not null))
);

-- One large import of a user at a time (decision 21).
create unique index imports_one_at_a_time on imports (user_id) where state in ('receiving', 'queued');

create index imports_touched_at on imports (touched_at);

alter table imports alter column user_id set statistics 0;

-- The body of a staged import, unchanged. It is stored as bytes, because text accepts neither U+0000 nor invalid
-- UTF-8.
create table import_chunks (
  user_id bigint,
  import_id uuid,
  position integer,
  bytes bytea not null,
  constraint import_chunks_pkey primary key (user_id, import_id, position),
  constraint import_chunks_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- The errors of a staged import: JSON text as in the response, several errors per row, in order. They are deleted
-- once the response has been sent.
create table import_errors (
  user_id bigint,
  import_id uuid,
  position integer,
  errors text collate "C" not null,
  constraint import_errors_pkey primary key (user_id, import_id, position),
  constraint import_errors_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- Chunks are read once and deleted, so compressing them would cost more than it saves.
alter table import_chunks alter column bytes set storage external;
alter table import_chunks alter column user_id set statistics 0;
alter table import_errors alter column user_id set statistics 0;
