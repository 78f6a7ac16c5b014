-- Deletes the bookmarks with these ids from the trash for good. If `p_ids` is null, everything in the user's
-- trash is deleted.
create or replace function delete_from_trash(
  p_user_id bigint, p_token_hash bytea, p_ids bigint[],
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_count bigint;
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  if p_ids is null then
    delete from trash where user_id = p_user_id;
  else
    delete from trash where user_id = p_user_id and id = any (p_ids);
  end if;
  get diagnostics v_count = row_count;
  update accounts set trash_count = trash_count - v_count where user_id = p_user_id and v_count > 0;
  response := '{"deleted":true,"count":' || v_count || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
