-- Takes one step of a deletion of tags, or of a merge of a tag. Removes the tags `p_ids` from the next bookmarks with ids
-- above `p_after`, and adds `p_into_id` in their place if `p_into_id` is not null. Deletes the tags once no bookmark has
-- one of them. Returns the id after which the next step begins (0 to start over), or null after the last step. The
-- `updated_at` of the bookmarks does not change. After each step all bookmarks and counts are correct, so a caller may
-- stop after any step and continue later. The caller must hold the lock on the account's row.
create or replace function replace_tags(
  p_user_id bigint, p_ids bigint[], p_into_id bigint, p_after bigint, p_work integer
) returns bigint
-- Postgres plans for lists of unknown length, and takes them for short. So a step finds its bookmarks by their ids and
-- never reads all bookmarks of the user (docs/decisions/0093-plans-that-stay-good.md). `in (select unnest(…))` puts the
-- tags, which may be many, into a hash table.
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_next record;
  -- the bookmarks of this step that get `p_into_id`
  v_gaining bigint[] := '{}';
  v_remaining_count bigint;
  v_is_last boolean;
begin
  v_next := next_carrying(p_user_id, p_ids, p_after, p_work);
  update tags t set bookmark_count = t.bookmark_count - losing.count
  from (
    select tag.id, count(*) as count
    from bookmarks b
    cross join unnest(b.tag_ids) as tag (id)
    where b.user_id = p_user_id and b.id = any (v_next.ids) and tag.id in (select unnest(p_ids))
    group by tag.id
  ) losing
  where t.user_id = p_user_id and t.id = losing.id;
  select sum(bookmark_count) into v_remaining_count from tags where user_id = p_user_id and id = any (p_ids);
  -- The step is the last one if no bookmark with the tags is left. A step from the beginning (`p_after` is 0) misses no
  -- bookmark, so it is enough that no more bookmarks follow. In any other step, the tags' counters must also be 0,
  -- because bookmarks with smaller ids may have received a tag again meanwhile.
  v_is_last := not v_next.has_more and (v_remaining_count = 0 or p_after = 0);
  if p_into_id is not null then
    v_gaining := array(
      select id
      from bookmarks
      where user_id = p_user_id and id = any (v_next.ids) and not tag_ids @> array[p_into_id]
      order by id
    );
    update tags set bookmark_count = bookmark_count + cardinality(v_gaining) where user_id = p_user_id and id = p_into_id;
  end if;
  with changed as materialized (
    select b.id, array(
      select distinct tag.id
      from unnest(b.tag_ids || p_into_id) as tag (id)
      where tag.id not in (select unnest(p_ids))
    ) as new_ids
    from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_next.ids)
  )
  update bookmarks b
  set tag_ids = changed.new_ids,
    tags = (
      select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
      from tags t
      where t.user_id = p_user_id and t.id = any (changed.new_ids)
    )
  from changed
  where b.user_id = p_user_id and b.id = changed.id;
  if v_is_last then
    delete from tags where user_id = p_user_id and id = any (p_ids);
    update accounts set tag_count = tag_count - cardinality(p_ids) where user_id = p_user_id;
    perform note_changes(p_user_id, 'tag', p_ids);
  end if;
  -- The last step records only the bookmarks that get `p_into_id`. Readers of changes remove deleted tags from the other
  -- bookmarks by themselves.
  perform note_changes(p_user_id, 'bookmark', case when v_is_last then v_gaining else v_next.ids end);
  return case
    when v_is_last then null
    when v_next.has_more then v_next.ids[cardinality(v_next.ids)]
    -- Start over: other writers have put a tag on bookmarks with smaller ids meanwhile.
    else 0
  end;
end
$$;
