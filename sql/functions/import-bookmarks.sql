-- Writes the entries of an import and its result: all of it in one transaction, or nothing. A small import comes with the
-- caller's token and leaves its result behind as well: after a lost connection that row, or the cancellation that took
-- its place, tells whether it happened. A staged import comes with a worker's lease instead, and has its token in its row;
-- one that the lease does not hold any more (another worker's, done, or cancelled) is left alone.
--
-- Entries come already checked, and free of duplicates among themselves in a merge: `p_pieces` pieces of them lie in
-- `import_pieces`, and the last one comes with the call, its columns under the same names. Tags come once for all pieces.
-- The caller relies on urls and pieces that it read earlier: where they have changed since, the outcome is `import_changed`
-- and nothing is written.
--
-- Each call is planned for the arrays that it has. A plan kept from other calls would believe that each holds ten values:
-- joins of them were then nested loops, 377 million rows for 20,000 entries. And no table is joined with an array, for what
-- Postgres believes of a user's rows may be as wrong: rows are found by `= any (array)`, which is linear in both however it
-- is planned, or by the conflict of an upsert, which needs no plan.
create or replace function import_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_import_id uuid, p_lease_id uuid, p_replace boolean,
  p_pieces integer, p_names text[], p_columns text, p_column_separator text, p_separator text,
  p_url_keys uuid[], p_tag_sets integer[], p_set_refs text, p_known_keys uuid[], p_known_at text,
  p_tag_names text[], p_tag_keys text[],
  p_skipped bigint, p_errors text,
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out result text, out error_bytes bigint
)
language plpgsql set plan_cache_mode = force_custom_plan as $$
declare
  v_account accounts;
  v_piece record;
  v_url_keys uuid[];
  -- those that the user had when the caller looked, and those that the user has now
  v_known_before uuid[];
  v_known uuid[] := '{}';
  v_is_as_before boolean;
  v_is_new boolean[];
  v_new bigint;
  v_from integer := 0;
  v_to integer;
  v_columns text[];
  -- by the place of a tag: bookmarks that will carry it, its id, how it travels
  v_counts bigint[] := array_fill(0::bigint, array[cardinality(p_tag_keys)]);
  v_tag_ids bigint[];
  v_tags text[];
  -- the tags that entries carry, as they are stored
  v_ids bigint[];
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

  select k.outcome, k.response into outcome, result
  from find_response(p_user_id, p_idempotency_key, p_request_hash) k;
  if outcome is not null then
    return;
  end if;
  if result is not null then
    error_bytes := repeat_import(p_user_id, p_import_id, p_lease_id is not null, result, p_idempotency_key);
    return;
  end if;

  select coalesce(array_agg(wanted.url_key order by pieces.position, wanted.place), '{}') into v_url_keys
  from (
    select position, url_keys from import_pieces where user_id = p_user_id and import_id = p_import_id
    union all
    select p_pieces, p_url_keys
  ) pieces
  cross join unnest(pieces.url_keys) with ordinality as wanted (url_key, place);
  select coalesce(array_agg(url_key), '{}') into v_known_before
  from (
    select known_keys from import_pieces where user_id = p_user_id and import_id = p_import_id
    union all
    select p_known_keys
  ) pieces
  cross join unnest(pieces.known_keys) as wanted (url_key);
  -- Every edit, deletion and `replace` changes this version: where it is the same, the urls that were known are still there.
  v_is_as_before := p_known_at = v_account.generation || '.' || v_account.last_change;
  if not p_replace then
    v_known := known_url_keys(
      p_user_id, case when v_is_as_before then v_url_keys else v_url_keys || v_known_before end
    );
  end if;
  if v_is_as_before is not true
      and exists (select from unnest(v_known_before) as before (url_key) where url_key <> all (v_known))
    or p_pieces > 0 and p_pieces <> (
      select count(*) from import_pieces where user_id = p_user_id and import_id = p_import_id
    )
  then
    outcome := 'import_changed';
    return;
  end if;
  select
    coalesce(array_agg(is_new order by place), '{}'),
    count(*) filter (where is_new)
  into v_is_new, v_new
  from (
    select place, wanted.url_key <> all (v_known) as is_new
    from unnest(v_url_keys) with ordinality as wanted (url_key, place)
  ) entries;

  -- What adds nothing passes no cap, not even one that was passed before (decision 33).
  if v_new > 0 and not v_account.is_premium
    and (case when p_replace then 0 else v_account.bookmark_count end) + v_new > p_free_limit
  then
    outcome := 'bookmark_limit';
    return;
  end if;

  -- Only the tags of entries that are written are made.
  for v_piece in
    select position, tag_sets, set_refs
    from import_pieces
    where user_id = p_user_id and import_id = p_import_id
    union all
    select p_pieces, p_tag_sets, p_set_refs
    order by position
  loop
    v_to := v_from + cardinality(v_piece.tag_sets);
    with refs as materialized (
      select sets.place as tag_set, refs.place
      from unnest(string_to_array(v_piece.set_refs, ';')) with ordinality as sets (refs, place)
      cross join unnest(sets.refs::integer[]) as refs (place)
    ), entries as materialized (
      select tag_set, count(*) as bookmarks
      from unnest(v_piece.tag_sets, v_is_new[v_from + 1:v_to]) as entry (tag_set, is_new)
      where is_new and tag_set > 0
      group by tag_set
    ), used as materialized (
      select refs.place, sum(entries.bookmarks) as bookmarks
      from entries
      join refs on refs.tag_set = entries.tag_set
      group by refs.place
    )
    select coalesce(array_agg(counted.bookmarks + coalesce(used.bookmarks, 0) order by counted.place), '{}')
    into v_counts
    from unnest(v_counts) with ordinality as counted (bookmarks, place)
    left join used on used.place = counted.place;
    v_from := v_to;
  end loop;
  v_names := array(select name from unnest(p_tag_names, v_counts) as tag (name, bookmarks) where bookmarks > 0);
  v_keys := array(select key from unnest(p_tag_keys, v_counts) as tag (key, bookmarks) where bookmarks > 0);
  if ensure_tags(p_user_id, v_names, v_keys, p_tag_limit) is null then
    outcome := 'tag_limit';
    return;
  end if;
  select
    coalesce(array_agg(id), '{}'), coalesce(array_agg(name), '{}'), coalesce(array_agg(name_key), '{}'),
    coalesce(array_agg(render_tag(id, name)), '{}')
  into v_ids, v_names, v_keys, v_rendered
  from tags
  where user_id = p_user_id and name_key = any (v_keys);

  result := '{"imported":' || v_new
    || ',"skipped":' || p_skipped + cardinality(v_known_before) + cardinality(v_is_new) - v_new || '}';
  outcome := keep_import(
    p_user_id, p_import_id, p_lease_id is not null, result, p_errors, p_idempotency_key, p_request_hash
  );
  if outcome is not null then
    return;
  end if;
  error_bytes := 0;

  if p_replace then
    perform move_to_trash(p_user_id, null, p_free_limit);
    delete from bookmarks where user_id = p_user_id;
    delete from search_blocks where user_id = p_user_id;
    delete from search_signatures where user_id = p_user_id;
    update tags set bookmark_count = 0 where user_id = p_user_id and bookmark_count > 0;
    -- The generation has every reader of changes begin anew.
    delete from changes where user_id = p_user_id;
  end if;
  if p_replace or v_new > 0 then
    update accounts
    set bookmark_count = v_new + case when p_replace then 0 else bookmark_count end,
      unpacked = v_new + case when p_replace then 0 else unpacked end,
      generation = generation + p_replace::integer
    where user_id = p_user_id
    returning unpacked into v_account.unpacked;
  end if;
  select
    array_agg(tag.id order by wanted.place),
    array_agg(tag.rendered order by wanted.place)
  into v_tag_ids, v_tags
  from unnest(p_tag_keys) with ordinality as wanted (key, place)
  left join unnest(v_ids, v_keys, v_rendered) as tag (id, key, rendered) on tag.key = wanted.key;
  insert into tags as t (user_id, id, name, name_key, bookmark_count)
  select p_user_id, tag.id, tag.name, tag.key, used.bookmarks
  from unnest(v_ids, v_names, v_keys) as tag (id, name, key)
  join unnest(p_tag_keys, v_counts) as used (key, bookmarks) on used.key = tag.key
  on conflict (user_id, name_key) do update set bookmark_count = t.bookmark_count + excluded.bookmark_count;

  v_now := date_trunc('milliseconds', clock_timestamp());
  perform next_id('bookmarks_id_seq', v_account.id_floor);
  v_from := 0;
  for v_piece in
    select position, names, columns, column_separator, separator, url_keys, tag_sets, set_refs
    from import_pieces
    where user_id = p_user_id and import_id = p_import_id
    union all
    select p_pieces, p_names, p_columns, p_column_separator, p_separator, p_url_keys, p_tag_sets, p_set_refs
    order by position
  loop
    v_to := v_from + cardinality(v_piece.tag_sets);
    v_columns := string_to_array(v_piece.columns, v_piece.column_separator);
    -- What unnests an array of a row comes by itself first: no join can then be repeated for each row. And no array is asked
    -- for its nth element: in a plan for the arrays at hand that is a walk through all before it.
    with refs as materialized (
      select sets.place as tag_set, refs.place, refs.n
      from unnest(string_to_array(v_piece.set_refs, ';')) with ordinality as sets (refs, place)
      cross join unnest(sets.refs::integer[]) with ordinality as refs (place, n)
    ), tags as materialized (
      select place, id, rendered
      from unnest(v_tag_ids, v_tags) with ordinality as tag (id, rendered, place)
    ), sets as materialized (
      select refs.tag_set,
        array_agg(tags.id order by refs.n) as tag_ids,
        render_tags(string_agg(tags.rendered, ',' order by refs.n)) as tags
      from refs
      join tags on tags.place = refs.place
      group by refs.tag_set
    )
    insert into bookmarks (
      user_id, id, created_at, updated_at, tag_ids, tags, url_key, host, search_text, url, title, comment
    )
    select
      p_user_id, nextval('bookmarks_id_seq'),
      coalesce(entry.created_at::timestamptz, v_now),
      coalesce(entry.updated_at::timestamptz, entry.created_at::timestamptz, v_now),
      coalesce(sets.tag_ids, '{}'), coalesce(sets.tags, '[]'),
      entry.url_key, coalesce(entry.host, ''), entry.search_text,
      entry.url, coalesce(entry.title, ''), coalesce(entry.comment, '')
    from unnest(
      v_piece.url_keys, v_piece.tag_sets, v_is_new[v_from + 1:v_to],
      import_column(v_piece.names, v_columns, v_piece.separator, 'host'),
      import_column(v_piece.names, v_columns, v_piece.separator, 'search_text'),
      import_column(v_piece.names, v_columns, v_piece.separator, 'url'),
      import_column(v_piece.names, v_columns, v_piece.separator, 'title'),
      import_column(v_piece.names, v_columns, v_piece.separator, 'comment'),
      import_column(v_piece.names, v_columns, v_piece.separator, 'created_at'),
      import_column(v_piece.names, v_columns, v_piece.separator, 'updated_at')
    ) with ordinality as entry (
      url_key, tag_set, is_new, host, search_text, url, title, comment, created_at, updated_at, place
    )
    left join sets on sets.tag_set = entry.tag_set
    where entry.is_new
    -- ids are drawn in this order, so they rise with the entries
    order by entry.place;
    v_from := v_to;
  end loop;
  delete from import_pieces where user_id = p_user_id and import_id = p_import_id;
  perform raise_high_water_mark(p_user_id, next_id('bookmarks_id_seq'));
  if v_new > 0 and v_account.unpacked >= 64 then
    perform pack_texts(p_user_id);
  end if;
end
$$;
