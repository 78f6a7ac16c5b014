-- Creates a tag, and returns it as JSON text. The outcome is `tag_exists` if a tag of the user has the same normalized
-- name.
create or replace function create_tag(
  p_user_id bigint, p_token_hash bytea, p_name text, p_key text, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out tag text
)
language plpgsql as $$
declare
  v_floor bigint;
  v_id bigint;
  v_created_at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
  select begun.outcome, begun.response into outcome, tag
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or tag is not null then
    return;
  end if;

  if exists (select from tags where user_id = p_user_id and name_key = p_key) then
    outcome := 'tag_exists';
    return;
  end if;
  update accounts set tag_count = tag_count + 1
  where user_id = p_user_id and tag_count < p_tag_limit
  returning id_floor into v_floor;
  if not found then
    outcome := 'tag_limit';
    return;
  end if;
  v_id := next_id('tags_id_seq', v_floor);
  insert into tags (user_id, id, name, name_key, created_at) values (p_user_id, v_id, p_name, p_key, v_created_at);
  perform raise_high_water_mark(p_user_id, v_id);
  tag := '{"id":' || v_id || ',"name":' || to_json(p_name) || ',"created_at":"' || render_time(v_created_at) || '"}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, tag);
end
$$;
