-- Deletes a tag and takes it off all bookmarks.
create or replace function delete_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_idempotency_key text, p_request_hash bytea,
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
  delete from tags where user_id = p_user_id and id = p_id returning bookmark_count into v_bookmarks;
  if not found then
    outcome := 'tag_missing';
    return;
  end if;
  update accounts set tag_count = tag_count - 1 where user_id = p_user_id;
  perform note_changes(p_user_id, 'tag', array[p_id]);
  perform follow_tag(p_user_id, p_id, v_bookmarks);
  response := '{"deleted":true}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
