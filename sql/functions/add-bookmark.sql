-- Adds a bookmark, and returns it as JSON text. `p_bookmark` holds the fields of the bookmark and also `url_key`,
-- `host` and `search_text`. `p_tag_keys` holds the normalized names of the tags. These names must be distinct and
-- sorted by their bytes, because a bookmark shows its tags in this order. If the bookmark would exceed a cap, nothing
-- changes.
--
-- Adds are the most frequent writes, so this function has two fast paths:
-- - It takes most ids directly from their sequence, without a call of `next_id`. Such an id is used if it is above
--   `v_floor` (`accounts.id_floor`) and at least `v_min_id` (`min_id_now()`). Otherwise, or if this node has no
--   sequence yet, `next_id` returns another id. See docs/decisions/0092-cost-of-an-add.md.
-- - Each insert has a `values` clause, because Citus needs two steps to insert the result of a query. See
--   docs/decisions/0094-cost-of-citus.md.
create or replace function add_bookmark(
  p_user_id bigint, p_token_hash bytea, p_bookmark jsonb, p_tag_names text[], p_tag_keys text[],
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out bookmark text
)
language plpgsql as $$
declare
  v_tag_ids bigint[] := '{}';
  v_new_ids bigint[];
  v_next_id bigint;
  v_tag_id bigint;
  v_tag_name text;
  v_tag_key text;
  v_tags text;
  v_id bigint;
  v_floor bigint;
  v_min_id bigint;
  v_now timestamptz;
  v_bookmark bookmarks;
  v_unpacked integer;
begin
  if p_idempotency_key is not null then
    if not lock_account(p_user_id, p_token_hash) then
      outcome := 'token';
      return;
    end if;
    select k.outcome, k.response into outcome, bookmark
    from find_response(p_user_id, p_idempotency_key, p_request_hash) k;
    if outcome is not null or bookmark is not null then
      return;
    end if;
  end if;

  update accounts set bookmark_count = bookmark_count + 1, unpacked = unpacked + 1
  where user_id = p_user_id and (is_premium or bookmark_count < p_free_limit)
  returning id_floor, unpacked into v_floor, v_unpacked;
  if not found then
    outcome := case when token_is_valid(p_user_id, p_token_hash) then 'bookmark_limit' else 'token' end;
    return;
  end if;
  -- The token is checked only now, because it may have been revoked while the update waited for the lock.
  perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
  if not found then
    update accounts set bookmark_count = bookmark_count - 1, unpacked = unpacked - 1 where user_id = p_user_id;
    outcome := 'token';
    return;
  end if;

  v_now := date_trunc('milliseconds', clock_timestamp());
  v_min_id := min_id_now();
  if cardinality(p_tag_keys) > 0 then
    v_next_id := nextval(to_regclass('tags_id_seq'));
    -- If this node has no sequence yet, `v_next_id` is null, so the condition in parentheses is not true.
    if (v_next_id > v_floor and v_next_id >= v_min_id) is not true then
      v_next_id := next_id('tags_id_seq', v_floor);
    end if;
    for v_n in 1 .. cardinality(p_tag_keys) loop
      -- The insert uses variables, because array elements would make it slower, above all with Citus.
      v_tag_name := p_tag_names[v_n];
      v_tag_key := p_tag_keys[v_n];
      -- If the tag exists, this upsert raises its `bookmark_count`. Postgres keeps the plan of an upsert. But it would
      -- plan a separate update again at each call, and that would double the time of an add.
      insert into tags as t (user_id, id, name, name_key, bookmark_count, created_at)
      values (p_user_id, v_next_id, v_tag_name, v_tag_key, 1, v_now)
      on conflict (user_id, name_key) do update set bookmark_count = t.bookmark_count + 1
      returning t.id, t.name into v_tag_id, v_tag_name;
      v_tag_ids := v_tag_ids || v_tag_id;
      v_tags := concat_ws(',', v_tags, render_tag(v_tag_id, v_tag_name));
      -- If the returned id is the new one, the tag was created, and the next tag needs another id.
      if v_tag_id = v_next_id then
        v_new_ids := v_new_ids || v_tag_id;
        v_next_id := nextval('tags_id_seq');
      end if;
    end loop;
    if v_new_ids is not null then
      update accounts set tag_count = tag_count + cardinality(v_new_ids)
      where user_id = p_user_id and tag_count + cardinality(v_new_ids) <= p_tag_limit;
      if found then
        perform raise_high_water_mark(p_user_id, (select max(id) from unnest(v_new_ids) as id));
      else
        -- The account would have too many tags. Undo everything that this call has changed.
        delete from tags where user_id = p_user_id and id = any (v_new_ids);
        update tags set bookmark_count = bookmark_count - 1 where user_id = p_user_id and id = any (v_tag_ids);
        update accounts set bookmark_count = bookmark_count - 1, unpacked = unpacked - 1 where user_id = p_user_id;
        outcome := 'tag_limit';
        return;
      end if;
    end if;
  end if;

  -- If the id is too far above `v_min_id`, this function does not take the fast path, because
  -- `raise_high_water_mark` must record such an id.
  v_id := nextval(to_regclass('bookmarks_id_seq'));
  if (v_id > v_floor and v_id - v_min_id between 0 and limit_of('ids_per_tick')) is not true then
    v_id := next_id('bookmarks_id_seq', v_floor);
    perform raise_high_water_mark(p_user_id, v_id);
  end if;
  v_bookmark := new_bookmark(
    jsonb_populate_record(bookmark_defaults(), p_bookmark), p_user_id, v_id, v_tag_ids, render_tags(v_tags), v_now
  );
  insert into bookmarks values (v_bookmark.*);
  bookmark := render_bookmark(v_bookmark);
  if v_unpacked >= limit_of('block_bookmarks') then
    perform pack_texts(p_user_id);
  end if;
  if p_idempotency_key is not null then
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, bookmark);
  end if;
end
$$;
