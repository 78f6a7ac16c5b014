-- Deletes a bookmark. Its tags stay.
create or replace function delete_bookmark(p_user_id bigint, p_token_hash bytea, p_id bigint, out outcome text)
-- Each statement finds its rows by whole keys: the plan that fits all calls is kept, for planning would take half the time.
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_tag_ids bigint[];
begin
  if not lock_account(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from bookmarks where user_id = p_user_id and id = p_id returning tag_ids into v_tag_ids;
  if not found then
    outcome := 'bookmark_missing';
    return;
  end if;
  perform repack_texts(p_user_id, array[p_id]);
  perform note_changes(p_user_id, 'bookmark', array[p_id]);
  update accounts set bookmark_count = bookmark_count - 1 where user_id = p_user_id;
  update tags set bookmark_count = bookmark_count - 1 where user_id = p_user_id and id = any (v_tag_ids);
end
$$;
