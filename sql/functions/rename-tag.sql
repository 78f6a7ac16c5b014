-- Renames a tag, on all bookmarks that carry it.
create or replace function rename_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_name text, p_key text, out outcome text
)
language plpgsql as $$
declare
  v_bookmarks bigint;
begin
  if not lock_account(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  if not exists (select from tags where user_id = p_user_id and id = p_id) then
    outcome := 'tag_missing';
    return;
  end if;
  if exists (select from tags where user_id = p_user_id and name_key = p_key and id <> p_id) then
    outcome := 'tag_exists';
    return;
  end if;
  update tags set name = p_name, name_key = p_key
  where user_id = p_user_id and id = p_id
  returning bookmark_count into v_bookmarks;
  perform note_changes(p_user_id, 'tag', array[p_id]);
  perform follow_tag(p_user_id, p_id, v_bookmarks);
end
$$;
