-- Takes one step of the deletion of a tag: removes the tag from the next bookmarks with ids above `p_after`. With
-- `p_with_children`, the tags below it are deleted too. If `p_id` is null, `p_path_key` is the normalized name of the
-- tag. This tag need not exist if there are tags below it. `p_work` limits the step (see `next_carrying`). Once no
-- bookmark has one of these tags, the function deletes the tags and returns the response. Until then `response` is null,
-- and the caller must call again with `last_id` as `p_after`.
create or replace function delete_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_path_key text, p_with_children boolean,
  p_after bigint, p_work integer, p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text, out last_id bigint
)
language plpgsql as $$
declare
  v_ids bigint[];
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  -- Every step looks for the tags again, because other requests may have created or renamed tags meanwhile.
  if p_with_children then
    v_ids := tag_ids_under(
      p_user_id, coalesce(p_path_key, (select name_key from tags where user_id = p_user_id and id = p_id))
    );
  else
    v_ids := array(select id from tags where user_id = p_user_id and id = p_id);
  end if;
  if v_ids = '{}' then
    outcome := 'tag_missing';
    return;
  end if;
  last_id := replace_tags(p_user_id, v_ids, null, p_after, p_work);
  if last_id is null then
    response := '{"deleted":true}';
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
  end if;
end
$$;
