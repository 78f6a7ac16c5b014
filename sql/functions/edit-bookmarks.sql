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
  v_chosen_ids bigint[];
  v_report text;
  v_existing_added_ids bigint[];
  v_added_ids bigint[];
  v_removed_ids bigint[];
  v_changed_ids bigint[];
  v_now timestamptz := clock_timestamp();
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  select chosen, report into v_chosen_ids, v_report from choose_bookmarks(p_user_id, p_ids, p_if_updated_at);
  v_removed_ids := array(select id from tags where user_id = p_user_id and name_key = any (p_removed_keys));
  if cardinality(v_chosen_ids) = 0 then
    -- No bookmark was chosen, so no tag is created.
    p_added_names := '{}';
    p_added_keys := '{}';
  end if;

  -- Count the tags that each bookmark would have: its present tags and the added tags, without the removed tags. Added
  -- tags that do not exist yet have no ids, so they are counted separately. This check comes before any tag is created,
  -- so that a refused request creates no tags.
  v_existing_added_ids := array(select id from tags where user_id = p_user_id and name_key = any (p_added_keys));
  if exists (
    select from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_chosen_ids)
      and cardinality(p_added_keys) - cardinality(v_existing_added_ids) + (
        select count(distinct tag.id)
        from unnest(b.tag_ids || v_existing_added_ids) as tag (id)
        where tag.id <> all (v_removed_ids)
      ) > p_bookmark_tag_limit
  ) then
    outcome := 'bookmark_tag_limit';
    return;
  end if;
  v_added_ids := ensure_tags(p_user_id, p_added_names, p_added_keys, p_tag_limit);
  if v_added_ids is null then
    outcome := 'tag_limit';
    return;
  end if;

  with changed as materialized (
    select b.id, b.tag_ids as old_ids, array(
      select distinct tag.id
      from unnest(b.tag_ids || v_added_ids) as tag (id)
      where tag.id <> all (v_removed_ids)
    ) as new_ids
    from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_chosen_ids)
      and (b.tag_ids && v_removed_ids or not b.tag_ids @> v_added_ids)
  ), updated_tags as (
    -- For each bookmark, add 1 to the count of each of its new tags, and subtract 1 for each of its old tags.
    update tags t set bookmark_count = t.bookmark_count + total.difference
    from (
      select single.id, sum(single.difference) as difference
      from (
        select unnest(new_ids) as id, 1 as difference from changed
        union all
        select unnest(old_ids), -1 from changed
      ) single
      group by single.id
      having sum(single.difference) <> 0
    ) total
    where t.user_id = p_user_id and t.id = total.id
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
  select coalesce(array_agg(id order by id), '{}') into v_changed_ids from written;
  perform note_changes(p_user_id, 'bookmark', v_changed_ids);
  response := '{"edited":true,' || v_report || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
