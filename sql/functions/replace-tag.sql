-- Takes one step of a deletion or a merge of a tag. Removes the tag from the next bookmarks with ids above `p_after`,
-- and adds `p_into_id` in its place if `p_into_id` is not null. Deletes the tag once no bookmark has it. Returns the id
-- after which the next step begins (0 to start over), or null after the last step. The `updated_at` of the bookmarks
-- does not change. After each step all bookmarks and counts are correct, so a caller may stop after any step and
-- continue later. The caller must hold the lock on the account's row.
create or replace function replace_tag(p_user_id bigint, p_id bigint, p_into_id bigint, p_after bigint, p_work integer)
  returns bigint
language plpgsql as $$
declare
  v_next record;
  -- the bookmarks of this step that get `p_into_id`
  v_gaining bigint[] := '{}';
  v_remaining_count bigint;
  v_is_last boolean;
begin
  v_next := next_carrying(p_user_id, array[p_id], p_after, p_work);
  update tags set bookmark_count = bookmark_count - cardinality(v_next.ids)
  where user_id = p_user_id and id = p_id
  returning bookmark_count into v_remaining_count;
  -- The step is the last one if no bookmark with the tag is left. A step from the beginning (`p_after` is 0) misses no
  -- bookmark, so it is enough that no more bookmarks follow. In any other step, the tag's counter must also be 0,
  -- because bookmarks with smaller ids may have received the tag again meanwhile.
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
  update bookmarks b
  set tag_ids = case
      when b.id = any (v_gaining) then array_replace(tag_ids, p_id, p_into_id)
      else array_remove(tag_ids, p_id)
    end,
    tags = (
      select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
      from tags t
      where t.user_id = p_user_id and t.id <> p_id and t.id = any (b.tag_ids || p_into_id)
    )
  where user_id = p_user_id and id = any (v_next.ids);
  if v_is_last then
    delete from tags where user_id = p_user_id and id = p_id;
    update accounts set tag_count = tag_count - 1 where user_id = p_user_id;
    perform note_changes(p_user_id, 'tag', array[p_id]);
  end if;
  -- The last step records only the bookmarks that get `p_into_id`. Readers of changes remove a deleted tag from the
  -- other bookmarks by themselves.
  perform note_changes(p_user_id, 'bookmark', case when v_is_last then v_gaining else v_next.ids end);
  return case
    when v_is_last then null
    when v_next.has_more then v_next.ids[cardinality(v_next.ids)]
    -- Start over: other writers have put the tag on bookmarks with smaller ids meanwhile.
    else 0
  end;
end
$$;
