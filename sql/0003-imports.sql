-- works-with: 3
-- A large import between its receipt and its response. `receiving`: its entries arrive; `queued`: they are all there and a
-- worker may run it; `done`: it ran, or was found invalid, and `result` is what to respond; `cancelled`: it never runs.
create table imports (
  user_id bigint,
  id uuid,
  state text collate "C" not null default 'receiving',
  -- counts against the cap of staged bytes: what was announced, then what lies here
  bytes bigint not null,
  created_at timestamptz not null default now(),
  -- renewed while the bytes arrive: an upload that its replica died under is told by its age
  touched_at timestamptz not null default now(),
  -- a response as JSON text: `{"imported":…,"skipped":…}`, to which its errors belong, or `{"error":…,"code":…}`
  result text,
  -- of its errors, while they lie here
  error_bytes bigint not null default 0,
  -- the token that it was sent with: once that is revoked, nothing happens (decision 34)
  token_hash bytea,
  -- what came with the request, once it is queued
  idempotency_key text collate "C",
  request_hash bytea,
  -- how many workers have begun it, which of them has it, and until when
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

-- The body of a staged import as it was sent. Text would take neither U+0000 nor invalid UTF-8.
create table import_chunks (
  user_id bigint,
  import_id uuid,
  position integer,
  bytes bytea not null,
  constraint import_chunks_pkey primary key (user_id, import_id, position),
  constraint import_chunks_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- The errors of a staged import's entries as its response lists them: JSON text, some errors a row, in order. They lie here
-- until the response has been sent.
create table import_errors (
  user_id bigint,
  import_id uuid,
  position integer,
  errors text collate "C" not null,
  constraint import_errors_pkey primary key (user_id, import_id, position),
  constraint import_errors_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- Compressing what is read once and deleted costs more than it saves.
alter table import_chunks alter column bytes set storage external;
alter table import_chunks alter column user_id set statistics 0;
alter table import_errors alter column user_id set statistics 0;
