-- Adds tags to the bookmarks that `choose_bookmarks` chooses, and removes other tags from them. If this leaves the tags
-- of a bookmark as they are, that bookmark is not changed. If one bookmark would get too many tags, no bookmark is
-- changed.
create or replace function edit_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_ids bigint[], p_if_updated_at timestamptz[],
  p_added_names text[], p_added_keys text[], p_removed_keys text[],
  p_tag_limit integer, p_bookmark_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_chosen bigint[];
  v_report text;
  v_known bigint[];
  v_added bigint[];
  v_removed bigint[];
  v_changed bigint[];
  v_now timestamptz := clock_timestamp();
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  select chosen, report into v_chosen, v_report from choose_bookmarks(p_user_id, p_ids, p_if_updated_at);
  v_removed := array(select id from tags where user_id = p_user_id and name_key = any (p_removed_keys));
  if cardinality(v_chosen) = 0 then
    -- No bookmark was chosen, so no tag is created.
    p_added_names := '{}';
    p_added_keys := '{}';
  end if;

  -- A bookmark would have the tags that must be created, and those of its own tags and the known tags that are not
  -- removed. This check is made before any tag is created, so that a refused request creates no tags.
  v_known := array(select id from tags where user_id = p_user_id and name_key = any (p_added_keys));
  if exists (
    select from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_chosen)
      and cardinality(p_added_keys) - cardinality(v_known) + (
        select count(distinct carried.id)
        from unnest(b.tag_ids || v_known) as carried (id)
        where carried.id <> all (v_removed)
      ) > p_bookmark_tag_limit
  ) then
    outcome := 'bookmark_tag_limit';
    return;
  end if;
  v_added := ensure_tags(p_user_id, p_added_names, p_added_keys, p_tag_limit);
  if v_added is null then
    outcome := 'tag_limit';
    return;
  end if;

  with changed as materialized (
    select b.id, b.tag_ids as old_ids, array(
      select distinct carried.id
      from unnest(b.tag_ids || v_added) as carried (id)
      where carried.id <> all (v_removed)
    ) as new_ids
    from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_chosen)
      and (b.tag_ids && v_removed or not b.tag_ids @> v_added)
  ), updated_tags as (
    update tags t set bookmark_count = t.bookmark_count + moved.bookmarks
    from (
      select each.id, sum(each.bookmarks) as bookmarks
      from (
        select unnest(new_ids) as id, 1 as bookmarks from changed
        union all
        select unnest(old_ids), -1 from changed
      ) each
      group by each.id
      having sum(each.bookmarks) <> 0
    ) moved
    where t.user_id = p_user_id and t.id = moved.id
  ), written as (
    update bookmarks b
    set tag_ids = changed.new_ids,
      tags = (
        select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
        from tags t
        where t.user_id = p_user_id and t.id = any (changed.new_ids)
      ),
      updated_at = next_updated_at(b.updated_at, v_now)
    from changed
    where b.user_id = p_user_id and b.id = changed.id
    returning b.id
  )
  select coalesce(array_agg(id order by id), '{}') into v_changed from written;
  perform note_changes(p_user_id, 'bookmark', v_changed);
  response := '{"edited":true,' || v_report || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
