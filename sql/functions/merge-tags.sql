-- Takes one step of a merge: replaces the tag `p_id` with `p_into_id` on the next bookmarks with ids above `p_after`.
-- `p_work` limits the step (see `next_carrying`). Once no bookmark has the tag `p_id`, deletes this tag and returns the
-- response. Until then `response` is null, and the caller must call again with `last_id` as `p_after`.
create or replace function merge_tags(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_into_id bigint, p_after bigint, p_work integer,
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
  if (select count(*) from tags where user_id = p_user_id and id in (p_id, p_into_id)) < 2 then
    outcome := 'tag_missing';
    return;
  end if;
  last_id := replace_tags(p_user_id, array[p_id], p_into_id, p_after, p_work);
  if last_id is null then
    select '{"id":' || id || ',"name":' || to_json(name) || ',"bookmark_count":' || bookmark_count || '}' into response
    from tags
    where user_id = p_user_id and id = p_into_id;
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
  end if;
end
$$;
