-- Moves bookmarks out of the trash, and gives them new ids in the order of their old ids. `p_tag_names` must hold the
-- names of all tags of these bookmarks, and `p_tag_keys` the normalized names. If a name is missing, the trash has
-- changed since the caller read the names, and the outcome is `trash_changed`. A bookmark gets its tags by name, and
-- tags that no longer exist are created again. If the restore would exceed a cap, nothing changes.
create or replace function restore_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_ids bigint[], p_tag_names text[], p_tag_keys text[],
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_account accounts;
  -- the requested ids that are in the trash
  v_ids bigint[];
  v_missing_ids bigint[];
  v_used_names text[];
  -- the tags of the restored bookmarks: one name for each normalized name
  v_names text[];
  v_keys text[];
  -- for each normalized name, the `id` and the JSON `text` of the user's tag
  v_tags_by_key jsonb;
  -- for each used name in `p_tag_names`, the `id`, the `text` and the normalized name (`key`) of the user's tag
  v_tags_by_name jsonb;
  v_row trash;
  v_bookmark bookmarks;
  v_tag_ids bigint[];
  v_all_tag_ids bigint[] := '{}';
  v_rendered text;
  v_id bigint;
  v_restored text[] := '{}';
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  v_ids := array(select id from trash where user_id = p_user_id and id = any (p_ids) order by id);
  v_missing_ids := array(
    select requested.id
    from unnest(p_ids) with ordinality as requested (id, place)
    where requested.id <> all (v_ids)
    order by place
  );
  select * into v_account from accounts where user_id = p_user_id;
  if cardinality(v_ids) > 0 and not v_account.is_premium
    and v_account.bookmark_count + cardinality(v_ids) > p_free_limit
  then
    outcome := 'bookmark_limit';
    return;
  end if;

  v_used_names := tag_names_in_trash(p_user_id, v_ids);
  if not v_used_names <@ p_tag_names then
    outcome := 'trash_changed';
    return;
  end if;
  -- Names that differ only in case belong to one tag.
  select coalesce(array_agg(name), '{}'), coalesce(array_agg(key), '{}') into v_names, v_keys
  from (
    select distinct on (key) name, key
    from unnest(p_tag_names, p_tag_keys) as tag (name, key)
    where name = any (v_used_names)
    order by key, name
  ) distinct_tags;
  if ensure_tags(p_user_id, v_names, v_keys, p_tag_limit) is null then
    outcome := 'tag_limit';
    return;
  end if;
  select coalesce(jsonb_object_agg(name_key, jsonb_build_object('id', id, 'text', render_tag(id, name))), '{}')
  into v_tags_by_key
  from tags
  where user_id = p_user_id and name_key = any (v_keys);
  select coalesce(jsonb_object_agg(name, (v_tags_by_key -> key) || jsonb_build_object('key', key)), '{}')
  into v_tags_by_name
  from unnest(p_tag_names, p_tag_keys) as tag (name, key)
  where name = any (v_used_names);

  v_id := next_id('bookmarks_id_seq', v_account.id_floor);
  for v_row in select * from trash where user_id = p_user_id and id = any (v_ids) order by id loop
    select
      coalesce(array_agg((tag ->> 'id')::bigint order by tag ->> 'key' collate "C"), '{}'),
      render_tags(string_agg(tag ->> 'text', ',' order by tag ->> 'key' collate "C"))
    into v_tag_ids, v_rendered
    from json_array_elements((v_row.bookmark ->> 'tags')::json) old_tag
    cross join lateral (select v_tags_by_name -> (old_tag ->> 'name') as tag) current_tag;
    v_bookmark := new_bookmark(
      jsonb_populate_record(bookmark_defaults(), v_row.bookmark), p_user_id, v_id, v_tag_ids, v_rendered, now()
    );
    insert into bookmarks values (v_bookmark.*);
    v_restored := v_restored || format('{"id":%s,"new_id":%s}', v_row.id, v_id);
    v_all_tag_ids := v_all_tag_ids || v_tag_ids;
    v_id := nextval('bookmarks_id_seq');
  end loop;
  -- The final value of `v_id` is used for no bookmark. It is higher than the ids of all restored bookmarks.
  perform raise_high_water_mark(p_user_id, v_id);
  update tags t set bookmark_count = t.bookmark_count + tag_counts.bookmarks
  from (select id, count(*) as bookmarks from unnest(v_all_tag_ids) as id group by id) tag_counts
  where t.user_id = p_user_id and t.id = tag_counts.id;
  delete from trash where user_id = p_user_id and id = any (v_ids);
  update accounts
  set bookmark_count = bookmark_count + cardinality(v_ids), unpacked = unpacked + cardinality(v_ids),
    trash_count = trash_count - cardinality(v_ids)
  where user_id = p_user_id;
  if v_account.unpacked + cardinality(v_ids) >= limit_of('block_bookmarks') then
    perform pack_texts(p_user_id);
  end if;
  response := '{"restored":[' || array_to_string(v_restored, ',')
    || '],"missing":' || array_to_json(v_missing_ids) || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
