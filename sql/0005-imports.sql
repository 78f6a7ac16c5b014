-- Imports: one function that writes a whole import in one transaction, and the staging of large ones.

-- A large import between its receipt and its answer. `receiving`: its bytes arrive; `queued`: they are all there and a
-- worker may run it; `done`: it ran, or was found invalid, and `result` is what to answer; `cancelled`: it never runs.
create table imports (
  user_id bigint,
  id uuid,
  state text collate "C" not null default 'receiving',
  -- counts against the cap of staged bytes: what was announced, then what arrived
  bytes bigint not null,
  created_at timestamptz not null default now(),
  -- renewed while the bytes arrive: an upload that its replica died under is told by its age
  touched_at timestamptz not null default now(),
  -- an answer as JSON text: `{"imported":…}`, or `{"error":…,"code":…}`
  result text,
  -- what came with the request, once it is queued
  idempotency_key text collate "C",
  request_hash bytea,
  -- the trace that the request belongs to
  trace_parent text collate "C",
  constraint imports_pkey primary key (user_id, id),
  constraint imports_account foreign key (user_id) references accounts (user_id) on delete cascade,
  constraint imports_state check (state in ('receiving', 'queued', 'done', 'cancelled')),
  constraint imports_result check ((state = 'done') = (result is not null))
);

-- One large import of a user at a time (decision 21).
create unique index imports_one_at_a_time on imports (user_id) where state in ('receiving', 'queued');

create index imports_touched_at on imports (touched_at);

create table import_chunks (
  user_id bigint,
  import_id uuid,
  position integer,
  bytes bytea not null,
  constraint import_chunks_pkey primary key (user_id, import_id, position),
  constraint import_chunks_import foreign key (user_id, import_id) references imports (user_id, id) on delete cascade
);

-- Compressing what is read once and deleted costs more than it saves.
alter table import_chunks alter column bytes set storage external;

-- Writes the answer of an import beside what it did: into the row of a staged one, into a row of its own for a small
-- one. Where a cancellation took that place, the duplicate key undoes everything.
create function keep_import(p_user_id bigint, p_import_id uuid, p_is_staged boolean, p_result text) returns void
language plpgsql as $$
begin
  if p_is_staged then
    update imports set state = 'done', result = p_result, touched_at = now()
    where user_id = p_user_id and id = p_import_id;
    delete from import_chunks where user_id = p_user_id and import_id = p_import_id;
  else
    insert into imports (user_id, id, state, bytes, result) values (p_user_id, p_import_id, 'done', 0, p_result);
  end if;
end
$$;

-- Writes the entries of an import and its answer: all of it in one transaction, or nothing. A small import comes with the
-- caller's token and leaves its answer behind as well: after a lost connection that row, or the cancellation that took
-- its place, tells whether it happened. A staged import comes without a token; one that is no longer queued (done by
-- another worker, or cancelled) is left alone. Entries come as columns in step, already checked, and free of duplicates
-- among themselves in a merge. Tags come as distinct sets: `p_tag_sets` gives each entry's set (0: none), `p_set_refs`
-- each set's places in `p_tag_names`, in the order of their folded names.
create function import_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_import_id uuid, p_replace boolean, p_separator text,
  p_urls text, p_url_keys uuid[], p_titles text, p_comments text, p_search_texts text,
  p_created text[], p_updated text[], p_tag_sets integer[],
  p_set_refs text[], p_tag_names text[], p_tag_keys text[],
  p_skipped bigint, p_errors text,
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out result text
)
language plpgsql as $$
declare
  v_account accounts;
  v_is_new boolean[];
  v_new bigint;
  v_names text[];
  v_keys text[];
  v_now timestamptz;
begin
  if p_token_hash is null then
    select idempotency_key, request_hash into p_idempotency_key, p_request_hash
    from imports
    where user_id = p_user_id and id = p_import_id and state = 'queued'
    for update;
    if not found then
      outcome := 'import_over';
      return;
    end if;
  end if;

  select * into v_account from accounts where user_id = p_user_id for no key update;
  if not found or p_token_hash is not null and not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;

  select k.outcome, k.answer into outcome, result from find_answer(p_user_id, p_idempotency_key, p_request_hash) k;
  if outcome is not null then
    return;
  end if;
  if result is not null then
    perform keep_import(p_user_id, p_import_id, p_token_hash is null, result);
    return;
  end if;

  select
    coalesce(array_agg(is_new order by place), '{}'),
    count(*) filter (where is_new)
  into v_is_new, v_new
  from (
    select place, p_replace or not exists (
      select from bookmarks b where b.user_id = p_user_id and b.url_key = wanted.url_key
    ) as is_new
    from unnest(p_url_keys) with ordinality as wanted (url_key, place)
  ) entries;

  if not v_account.is_premium
    and (case when p_replace then 0 else v_account.bookmark_count end) + v_new > p_free_limit
  then
    outcome := 'bookmark_limit';
    return;
  end if;

  -- Only the tags of entries that are written are made.
  select coalesce(array_agg(name), '{}'), coalesce(array_agg(key), '{}') into v_names, v_keys
  from unnest(p_tag_names, p_tag_keys) with ordinality as wanted (name, key, place)
  where place in (
    select unnest(sets.refs::integer[])
    from unnest(p_set_refs) with ordinality as sets (refs, place)
    where sets.place in (
      select tag_set from unnest(p_tag_sets, v_is_new) as entries (tag_set, is_new) where is_new
    )
  );
  if ensure_tags(p_user_id, v_names, v_keys, p_tag_limit) is null then
    outcome := 'tag_limit';
    return;
  end if;

  if p_replace then
    delete from bookmarks where user_id = p_user_id;
    update tags set bookmark_count = 0 where user_id = p_user_id and bookmark_count > 0;
  end if;
  update accounts
  set bookmark_count = v_new + case when p_replace then 0 else bookmark_count end,
    generation = generation + p_replace::integer
  where user_id = p_user_id;

  v_now := current_millisecond();
  with sets as materialized (
    select sets.place as tag_set,
      array_agg(t.id order by refs.n) as tag_ids,
      '[' || string_agg('{"id":' || t.id || ',"name":' || to_json(t.name) || '}', ',' order by refs.n) || ']' as tags
    from unnest(p_set_refs) with ordinality as sets (refs, place)
    cross join unnest(sets.refs::integer[]) with ordinality as refs (ref, n)
    join unnest(p_tag_keys) with ordinality as wanted (key, ref) on wanted.ref = refs.ref
    join tags t on t.user_id = p_user_id and t.name_key = wanted.key
    group by sets.place
  ), counted as (
    update tags t set bookmark_count = t.bookmark_count + used.bookmarks
    from (
      select unnest(sets.tag_ids) as id, sum(entries.bookmarks) as bookmarks
      from (
        select tag_set, count(*) as bookmarks
        from unnest(p_tag_sets, v_is_new) as e (tag_set, is_new)
        where is_new
        group by tag_set
      ) entries
      join sets using (tag_set)
      group by 1
    ) used
    where t.user_id = p_user_id and t.id = used.id
  )
  insert into bookmarks (
    user_id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
  )
  select p_user_id,
    coalesce(entry.created::timestamptz, v_now),
    coalesce(entry.updated::timestamptz, entry.created::timestamptz, v_now),
    -- a single empty text comes out of string_to_array as none
    entry.url_key, entry.url, coalesce(entry.title, ''), coalesce(entry.comment, ''),
    coalesce(sets.tag_ids, '{}'), coalesce(sets.tags, '[]'), entry.search_text
  from unnest(
    string_to_array(p_urls, p_separator), p_url_keys, string_to_array(p_titles, p_separator),
    string_to_array(p_comments, p_separator), string_to_array(p_search_texts, p_separator),
    p_created, p_updated, p_tag_sets, v_is_new
  ) with ordinality as entry (
    url, url_key, title, comment, search_text, created, updated, tag_set, is_new, place
  )
  left join sets using (tag_set)
  where entry.is_new
  -- ids are drawn in this order, so they rise with the entries
  order by entry.place;

  result := '{"imported":' || v_new
    || ',"skipped":' || p_skipped + cardinality(v_is_new) - v_new
    || ',"errors":' || p_errors || '}';
  perform keep_import(p_user_id, p_import_id, p_token_hash is null, result);
  perform keep_answer(p_user_id, p_idempotency_key, p_request_hash, result);
end
$$;

-- Begins the staging of an import: `import_busy` while the user has another one, `import_full` where all users together
-- would pass the cap of staged bytes. The lock makes that sum exact; large imports are rare enough to wait for it.
create function begin_import(
  p_user_id bigint, p_token_hash bytea, p_import_id uuid, p_bytes bigint, p_staged_limit bigint,
  out outcome text
)
language plpgsql as $$
begin
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('imports.bytes', 0));
  if p_bytes + (select coalesce(sum(bytes), 0) from imports where state in ('receiving', 'queued')) > p_staged_limit then
    outcome := 'import_full';
    return;
  end if;
  insert into imports (user_id, id, bytes) values (p_user_id, p_import_id, p_bytes)
  on conflict (user_id) where state in ('receiving', 'queued') do nothing;
  if not found then
    outcome := 'import_busy';
  end if;
end
$$;
