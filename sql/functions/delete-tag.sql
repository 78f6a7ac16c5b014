-- Takes one step of the deletion of a tag: removes the tag from the next bookmarks with ids above `p_after`. `p_work`
-- limits the step (see `next_carrying`). Once no bookmark has the tag, the function deletes the tag and returns the
-- response. Until then `response` is null, and the caller must call again with `last_id` as `p_after`.
create or replace function delete_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_after bigint, p_work integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text, out last_id bigint
)
language plpgsql as $$
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
  last_id := replace_tag(p_user_id, p_id, null, p_after, p_work);
  if last_id is null then
    response := '{"deleted":true}';
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
  end if;
end
$$;
