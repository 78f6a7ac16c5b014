-- Deletes a tag and takes it off all bookmarks.
create or replace function delete_tag(p_user_id bigint, p_token_hash bytea, p_id bigint, out outcome text)
language plpgsql as $$
declare
  v_bookmarks bigint;
begin
  if not lock_account(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from tags where user_id = p_user_id and id = p_id returning bookmark_count into v_bookmarks;
  if not found then
    outcome := 'tag_missing';
    return;
  end if;
  update accounts set tag_count = tag_count - 1 where user_id = p_user_id;
  perform note_changes(p_user_id, 'tag', array[p_id]);
  perform follow_tag(p_user_id, p_id, v_bookmarks);
end
$$;
