-- Writes the entries of an import and its answer: all of it in one transaction, or nothing. A small import comes with the
-- caller's token and leaves its answer behind as well: after a lost connection that row, or the cancellation that took
-- its place, tells whether it happened. A staged import comes with a worker's lease instead, and has its token in its row;
-- one that the lease does not hold any more (another worker's, done, or cancelled) is left alone. Entries come already
-- checked, and free of duplicates among themselves in a merge: as columns in step, all in one text, which `p_names` names.
-- Tags come as distinct sets: the column `tag_set` gives each entry's set (0: none), `p_set_refs` each set's places in
-- `p_tag_names`, in the order of their folded names.
--
-- Each call is planned for the arrays that it has. A plan kept from other calls would believe that each holds ten values:
-- joins of them were then nested loops, 377 million rows for 20,000 entries. And no table is joined with an array, for what
-- Postgres believes of a user's rows may be as wrong: rows are found by `= any (array)`, which is linear in both however it
-- is planned, or by the conflict of an upsert, which needs no plan.
create or replace function import_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_import_id uuid, p_lease_id uuid, p_replace boolean,
  p_names text[], p_columns text, p_column_separator text, p_separator text,
  p_set_refs text[], p_tag_names text[], p_tag_keys text[],
  p_skipped bigint, p_errors text,
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out result text
)
language plpgsql set plan_cache_mode = force_custom_plan as $$
declare
  v_account accounts;
  v_columns text[] := string_to_array(p_columns, p_column_separator);
  v_url_keys uuid[] := import_column(p_names, v_columns, p_separator, 'url_key')::uuid[];
  v_tag_sets integer[] := import_column(p_names, v_columns, p_separator, 'tag_set')::integer[];
  v_search_texts text[] := import_column(p_names, v_columns, p_separator, 'search_text');
  v_urls text[] := import_column(p_names, v_columns, p_separator, 'url');
  v_titles text[] := import_column(p_names, v_columns, p_separator, 'title');
  v_comments text[] := import_column(p_names, v_columns, p_separator, 'comment');
  v_created text[] := import_column(p_names, v_columns, p_separator, 'created_at');
  v_updated text[] := import_column(p_names, v_columns, p_separator, 'updated_at');
  v_known uuid[] := '{}';
  v_is_new boolean[];
  v_new bigint;
  v_tag_ids bigint[];
  v_names text[];
  v_keys text[];
  v_rendered text[];
  v_now timestamptz;
begin
  if p_lease_id is not null then
    select token_hash, idempotency_key, request_hash into p_token_hash, p_idempotency_key, p_request_hash
    from imports
    where user_id = p_user_id and id = p_import_id and state = 'queued' and lease_id = p_lease_id
    for update;
    if not found then
      outcome := 'import_over';
      return;
    end if;
  end if;

  select * into v_account from accounts where user_id = p_user_id for no key update;
  if not found or not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;

  select k.outcome, k.answer into outcome, result from find_answer(p_user_id, p_idempotency_key, p_request_hash) k;
  if outcome is not null then
    return;
  end if;
  if result is not null then
    perform keep_import(p_user_id, p_import_id, p_lease_id is not null, result);
    return;
  end if;

  if not p_replace then
    v_known := known_url_keys(p_user_id, v_url_keys);
  end if;
  select
    coalesce(array_agg(is_new order by place), '{}'),
    count(*) filter (where is_new)
  into v_is_new, v_new
  from (
    select place, wanted.url_key <> all (v_known) as is_new
    from unnest(v_url_keys) with ordinality as wanted (url_key, place)
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
      select tag_set from unnest(v_tag_sets, v_is_new) as entries (tag_set, is_new) where is_new
    )
  );
  if ensure_tags(p_user_id, v_names, v_keys, p_tag_limit) is null then
    outcome := 'tag_limit';
    return;
  end if;
  select
    coalesce(array_agg(id), '{}'), coalesce(array_agg(name), '{}'), coalesce(array_agg(name_key), '{}'),
    coalesce(array_agg(render_tag(id, name)), '{}')
  into v_tag_ids, v_names, v_keys, v_rendered
  from tags
  where user_id = p_user_id and name_key = any (v_keys);

  if p_replace then
    delete from bookmarks where user_id = p_user_id;
    update tags set bookmark_count = 0 where user_id = p_user_id and bookmark_count > 0;
    -- The generation has every reader of changes begin anew.
    delete from changes where user_id = p_user_id;
  end if;
  update accounts
  set bookmark_count = v_new + case when p_replace then 0 else bookmark_count end,
    generation = generation + p_replace::integer
  where user_id = p_user_id;

  v_now := date_trunc('milliseconds', clock_timestamp());
  perform draw_id('bookmarks_id_seq');
  -- What unnests an array of a row comes by itself first: no join can then be repeated for each row.
  with refs as materialized (
    select sets.place as tag_set, refs.ref, refs.n
    from unnest(p_set_refs) with ordinality as sets (refs, place)
    cross join unnest(sets.refs::integer[]) with ordinality as refs (ref, n)
  ), wanted as materialized (
    select wanted.ref, tag.id, tag.rendered
    from unnest(p_tag_keys) with ordinality as wanted (key, ref)
    join unnest(v_tag_ids, v_keys, v_rendered) as tag (id, key, rendered) on tag.key = wanted.key
  ), sets as materialized (
    select refs.tag_set,
      array_agg(wanted.id order by refs.n) as tag_ids,
      render_tags(string_agg(wanted.rendered, ',' order by refs.n)) as tags
    from refs
    join wanted on wanted.ref = refs.ref
    group by refs.tag_set
  ), used as (
    select unnest(sets.tag_ids) as id, sum(entries.bookmarks) as bookmarks
    from (
      select tag_set, count(*) as bookmarks
      from unnest(v_tag_sets, v_is_new) as e (tag_set, is_new)
      where is_new
      group by tag_set
    ) entries
    join sets using (tag_set)
    group by 1
  ), counted as (
    insert into tags as t (user_id, id, name, name_key, bookmark_count)
    select p_user_id, tag.id, tag.name, tag.key, used.bookmarks
    from unnest(v_tag_ids, v_names, v_keys) as tag (id, name, key)
    join used on used.id = tag.id
    on conflict (user_id, name_key) do update set bookmark_count = t.bookmark_count + excluded.bookmark_count
  )
  insert into bookmarks (
    user_id, created_at, updated_at, tag_ids, tags, url_key, search_text, url, title, comment
  )
  select
    p_user_id,
    coalesce(entry.created_at::timestamptz, v_now),
    coalesce(entry.updated_at::timestamptz, entry.created_at::timestamptz, v_now),
    coalesce(sets.tag_ids, '{}'), coalesce(sets.tags, '[]'),
    entry.url_key, entry.search_text, entry.url, coalesce(entry.title, ''), coalesce(entry.comment, '')
  from unnest(
    v_url_keys, v_tag_sets, v_is_new, v_search_texts, v_urls, v_titles, v_comments, v_created, v_updated
  ) with ordinality as entry (
    url_key, tag_set, is_new, search_text, url, title, comment, created_at, updated_at, place
  )
  left join sets using (tag_set)
  where entry.is_new
  -- ids are drawn in this order, so they rise with the entries
  order by entry.place;

  result := '{"imported":' || v_new
    || ',"skipped":' || p_skipped + cardinality(v_is_new) - v_new
    || ',"errors":' || p_errors || '}';
  perform keep_import(p_user_id, p_import_id, p_lease_id is not null, result);
  perform keep_answer(p_user_id, p_idempotency_key, p_request_hash, result);
end
$$;
