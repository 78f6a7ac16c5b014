-- Renames a tag, on all bookmarks that carry it.
create or replace function rename_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_name text, p_name_key text,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_bookmarks bigint;
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  if not exists (select from tags where user_id = p_user_id and id = p_id) then
    outcome := 'tag_missing';
    return;
  end if;
  if exists (select from tags where user_id = p_user_id and name_key = p_name_key and id <> p_id) then
    outcome := 'tag_exists';
    return;
  end if;
  update tags set name = p_name, name_key = p_name_key
  where user_id = p_user_id and id = p_id
  returning bookmark_count into v_bookmarks;
  perform note_changes(p_user_id, 'tag', array[p_id]);
  perform follow_tag(p_user_id, p_id, v_bookmarks);
  response := render_tag(p_id, p_name);
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
