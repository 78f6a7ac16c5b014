-- Writes the entries of an import and its result in one transaction. The token and the idempotency key are in the
-- import's row of `imports`. The outcome is `import_over` if the caller no longer holds the lease `p_lease_id`, or if a
-- crash of the server has emptied the unlogged table `import_batches`. If an earlier import had the same idempotency
-- key, this import only gets its result: `repeats` is the id of the earlier import.
--
-- The entries come in batches. The first `p_batches` batches are in `import_batches`. The last batch comes with the
-- call: `p_url_keys`, `p_tag_sets`, `p_entries` and `p_errors` are like the columns of `import_batches`. `p_tag_names`
-- holds the names of all tags that the entries have, and `p_tag_keys` holds the normalized names. A tag set lists
-- positions in these two arrays. The caller has validated the entries. For a merge, the caller has also removed
-- duplicates, and `p_skipped` is their number.
--
-- A `replace` moves the user's bookmarks to the trash (see `move_to_trash`). If `p_trash_limit` is null, it deletes them.
--
-- Postgres plans each statement for the arrays of the call. A kept plan would expect short arrays and choose nested
-- loops. The planner may also misjudge how many rows a user has. So no statement joins a table with an array
-- (docs/decisions/0093-plans-that-stay-good.md).
create or replace function import_bookmarks(
  p_user_id bigint, p_import_id uuid, p_lease_id uuid, p_replace boolean,
  p_batches integer, p_url_keys uuid[], p_tag_sets text[], p_entries text, p_errors bytea,
  p_tag_names text[], p_tag_keys text[], p_skipped bigint,
  p_free_limit bigint, p_trash_limit bigint, p_tag_limit integer,
  out outcome text, out result text, out repeats uuid
)
language plpgsql set plan_cache_mode = force_custom_plan as $$
declare
  v_import record;
  v_account accounts;
  -- the size in bytes of the import's errors, with the commas between them
  v_error_bytes bigint;
  v_batch record;
  -- the number of entries before a batch, and the number of entries up to the batch's end
  v_batch_start integer := 0;
  v_batch_end integer;
  -- `v_url_keys`, `v_tag_sets` and `v_is_new` have one value for each entry, in the order of the entries
  v_url_keys uuid[];
  v_tag_sets text[];
  v_is_new boolean[];
  -- the url keys of entries whose url the user has already saved; empty for a `replace`
  v_known_keys uuid[] := '{}';
  v_is_new_in_batch boolean[];
  v_new_count bigint;
  -- `v_places`, `v_counts`, `v_ids`, `v_names` and `v_keys` have one value for each tag of the new entries: its
  -- position in `p_tag_keys`, the number of its new bookmarks, its id, its name, and its normalized name
  v_places bigint[];
  v_counts bigint[];
  v_ids bigint[];
  v_names text[];
  v_keys text[];
  v_now timestamptz;
begin
  -- Check the lease, the token and the idempotency key.
  -- While the function waits for the lock on the account, the import can still be cancelled.
  select * into v_account from accounts where user_id = p_user_id for no key update;
  select is_staged, token_hash, idempotency_key, request_hash into v_import
  from imports
  where user_id = p_user_id and id = p_import_id and state = 'queued' and lease_id = p_lease_id
  for update;
  if not found
    or p_batches <> (select count(*) from import_batches where user_id = p_user_id and import_id = p_import_id)
  then
    outcome := 'import_over';
    return;
  end if;
  if not token_is_valid(p_user_id, v_import.token_hash) then
    outcome := 'token';
    return;
  end if;
  select kept.outcome, kept.response, kept.import_id into outcome, result, repeats
  from find_response(p_user_id, v_import.idempotency_key, v_import.request_hash) kept;
  if outcome is not null then
    return;
  end if;
  if result is not null then
    perform end_import(p_user_id, p_import_id, 'done', result, p_repeats => repeats);
    return;
  end if;
  v_error_bytes := (
    select sum(octet_length(errors) + 1) - 1
    from (
      select errors from import_batches where user_id = p_user_id and import_id = p_import_id
      union all
      select p_errors
    ) lists
    where errors <> ''
  );
  if v_import.idempotency_key is not null and v_error_bytes > kept_room(p_user_id) then
    -- Errors that would not even fit if nothing else was kept will not fit later either.
    outcome := case when v_error_bytes > limit_of('kept_bytes') then 'response_too_long' else 'responses_full' end;
    return;
  end if;

  -- Find the new entries. In a merge, an entry is new if the user has no bookmark of its url. In a `replace`, all
  -- entries are new.
  select
    coalesce(array_agg(entry.url_key order by batch.position, entry.n), '{}'),
    coalesce(array_agg(entry.tag_set order by batch.position, entry.n), '{}')
  into v_url_keys, v_tag_sets
  from (
    select position, url_keys, tag_sets from import_batches where user_id = p_user_id and import_id = p_import_id
    union all
    select p_batches, p_url_keys, p_tag_sets
  ) batch
  cross join unnest(batch.url_keys, batch.tag_sets) with ordinality as entry (url_key, tag_set, n);
  if not p_replace then
    v_known_keys := known_url_keys(p_user_id, v_url_keys);
  end if;
  select coalesce(array_agg(is_new order by n), '{}'), count(*) filter (where is_new)
  into v_is_new, v_new_count
  from (
    select n, url_key <> all (v_known_keys) as is_new
    from unnest(v_url_keys) with ordinality as entry (url_key, n)
  ) entries;
  -- A merge that adds nothing is allowed even if the account already exceeds its limit.
  if v_new_count > 0 and not v_account.is_premium
    and (case when p_replace then 0 else v_account.bookmark_count end) + v_new_count > p_free_limit
  then
    outcome := 'bookmark_limit';
    return;
  end if;

  -- Count how many new entries have each tag. A tag that no new entry has is not created.
  select coalesce(array_agg(place), '{}'), coalesce(array_agg(bookmarks), '{}') into v_places, v_counts
  from (
    select place::bigint, sum(bookmarks) as bookmarks
    from (
      select tag_set, count(*) as bookmarks
      from unnest(v_tag_sets, v_is_new) as entry (tag_set, is_new)
      where is_new
      group by tag_set
    ) sets
    cross join string_to_table(tag_set, ' ') as place
    group by place::bigint
  ) used;
  select coalesce(array_agg(name), '{}'), coalesce(array_agg(key), '{}') into v_names, v_keys
  from unnest(p_tag_names, p_tag_keys) with ordinality as tag (name, key, place)
  where place = any (v_places);
  if ensure_tags(p_user_id, v_names, v_keys, p_tag_limit) is null then
    outcome := 'tag_limit';
    return;
  end if;
  select coalesce(array_agg(id), '{}'), coalesce(array_agg(name), '{}'), coalesce(array_agg(name_key), '{}')
  into v_ids, v_names, v_keys
  from tags
  where user_id = p_user_id and name_key = any (v_keys);
  select
    coalesce(array_agg(place), '{}'), coalesce(array_agg(bookmarks), '{}'),
    coalesce(array_agg(id), '{}'), coalesce(array_agg(name), '{}'), coalesce(array_agg(key), '{}')
  into v_places, v_counts, v_ids, v_names, v_keys
  from unnest(v_places, v_counts) as used (place, bookmarks)
  join unnest(p_tag_keys) with ordinality as requested (key, place) using (place)
  join unnest(v_ids, v_names, v_keys) as stored (id, name, key) using (key);

  -- For a `replace`, empty the account. Then, for a merge as well, update the account's counters.
  if p_replace then
    if p_trash_limit is not null then
      perform move_to_trash(p_user_id, null, p_trash_limit);
    end if;
    delete from bookmarks where user_id = p_user_id;
    delete from search_blocks where user_id = p_user_id;
    delete from search_signatures where user_id = p_user_id;
    update tags set bookmark_count = 0 where user_id = p_user_id and bookmark_count > 0;
    -- The new generation makes every reader of changes start over, so nobody reads the earlier changes.
    delete from changes where user_id = p_user_id;
  end if;
  if p_replace or v_new_count > 0 then
    -- A `replace` raises the generation by one.
    update accounts
    set bookmark_count = v_new_count + case when p_replace then 0 else bookmark_count end,
      unpacked = v_new_count + case when p_replace then 0 else unpacked end,
      generation = generation + p_replace::integer
    where user_id = p_user_id
    returning unpacked into v_account.unpacked;
  end if;
  -- All tags in `v_ids` exist, so this statement only raises their counts. An upsert finds rows by their keys, whatever
  -- the planner expects.
  insert into tags as t (user_id, id, name, name_key, bookmark_count)
  select p_user_id, id, name, key, bookmarks
  from unnest(v_ids, v_names, v_keys, v_counts) as used (id, name, key, bookmarks)
  on conflict (user_id, name_key) do update set bookmark_count = t.bookmark_count + excluded.bookmark_count;

  -- Insert the new entries, one batch after the other.
  v_now := date_trunc('milliseconds', clock_timestamp());
  -- This call raises the sequence if its next ids would be too low. From then on, the ids come from the sequence
  -- itself.
  perform next_id('bookmarks_id_seq', v_account.id_floor);
  for v_batch in
    select position, url_keys, tag_sets, entries
    from import_batches
    where user_id = p_user_id and import_id = p_import_id
    union all
    select p_batches, p_url_keys, p_tag_sets, p_entries
    order by position
  loop
    v_batch_end := v_batch_start + cardinality(v_batch.url_keys);
    v_is_new_in_batch := v_is_new[v_batch_start + 1:v_batch_end];
    v_batch_start := v_batch_end;
    -- Skip a batch without new entries.
    continue when not true = any (v_is_new_in_batch);
    with tags as materialized (
      select place, id, key, render_tag(id, name) as rendered
      from unnest(v_places, v_ids, v_names, v_keys) as tag (place, id, name, key)
    ), refs as materialized (
      -- `materialized` makes this query a step of its own, so that Postgres splits the tag sets before it joins them
      -- with the tags.
      select tag_set, place::bigint as place
      from (
        select distinct tag_set
        from unnest(v_batch.tag_sets, v_is_new_in_batch) as entry (tag_set, is_new)
        where is_new
      ) used
      cross join string_to_table(tag_set, ' ') as place
    ), sets as materialized (
      select refs.tag_set,
        array_agg(tags.id order by tags.key collate "C") as tag_ids,
        render_tags(string_agg(tags.rendered, ',' order by tags.key collate "C")) as tags
      from refs
      join tags on tags.place = refs.place
      group by refs.tag_set
    )
    insert into bookmarks
    select (new.bookmark).*
    from (
      select new_bookmark(
        entry.bookmark, p_user_id, nextval('bookmarks_id_seq'), coalesce(sets.tag_ids, '{}'), coalesce(sets.tags, '[]'), v_now
      ) as bookmark
      from (
        select json_populate_recordset(bookmark_defaults(), v_batch.entries::json) as bookmark,
          unnest(v_batch.tag_sets) as tag_set, unnest(v_is_new_in_batch) as is_new,
          generate_series(1, cardinality(v_is_new_in_batch)) as n
      ) entry
      left join sets on sets.tag_set = entry.tag_set
      where entry.is_new
      -- The rows take their ids in this order, so the ids ascend with the entries.
      order by entry.n
      -- `offset` keeps this query a step of its own. Without it, Postgres would call `new_bookmark` for each column.
      offset 0
    ) new;
  end loop;
  perform raise_high_water_mark(p_user_id, next_id('bookmarks_id_seq'));
  if v_new_count > 0 and v_account.unpacked >= limit_of('block_bookmarks') then
    perform pack_texts(p_user_id);
  end if;
  result := '{"imported":' || v_new_count || ',"skipped":' || p_skipped + cardinality(v_is_new) - v_new_count || '}';
  perform keep_response(
    p_user_id, v_import.idempotency_key, v_import.request_hash, result,
    p_import_id => p_import_id, p_error_bytes => v_error_bytes
  );
  -- The request of a small import has the errors in memory. This statement builds the list, because each variable that
  -- held the list would need memory for it.
  if v_error_bytes > 0 and (v_import.is_staged or v_import.idempotency_key is not null) then
    update imports
    set errors = (
      select string_agg(errors, ',' order by position)
      from (
        select position, errors from import_batches where user_id = p_user_id and import_id = p_import_id
        union all
        select p_batches, p_errors
      ) lists
      where errors <> ''
    )
    where user_id = p_user_id and id = p_import_id;
  end if;
  perform end_import(p_user_id, p_import_id, 'done', result);
end
$$;
