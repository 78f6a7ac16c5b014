-- Deletes a bookmark, or moves it to the trash if `p_trash_limit` is given (see `move_to_trash`). If `p_if_updated_at` is
-- given and is not the bookmark's `updated_at`, the outcome is `bookmark_changed`. No tag is deleted, even if no other
-- bookmark has it.
create or replace function delete_bookmark(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_if_updated_at timestamptz,
  p_trash_limit bigint,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
-- Each statement finds its rows by a complete key, so one plan fits all calls. Without a kept plan, half of the time of
-- a call would go into planning.
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_tag_ids bigint[];
  v_updated_at timestamptz;
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  select tag_ids, updated_at into v_tag_ids, v_updated_at from bookmarks where user_id = p_user_id and id = p_id;
  if not found then
    outcome := 'bookmark_missing';
    return;
  end if;
  if v_updated_at <> p_if_updated_at then
    outcome := 'bookmark_changed';
    return;
  end if;
  if p_trash_limit is not null then
    perform move_to_trash(p_user_id, array[p_id], p_trash_limit);
  end if;
  delete from bookmarks where user_id = p_user_id and id = p_id;
  perform repack_texts(p_user_id, array[p_id]);
  perform note_changes(p_user_id, 'bookmark', array[p_id]);
  update accounts set bookmark_count = bookmark_count - 1 where user_id = p_user_id;
  update tags set bookmark_count = bookmark_count - 1 where user_id = p_user_id and id = any (v_tag_ids);
  response := '{"deleted":true}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
