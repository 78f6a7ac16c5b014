-- Runs operations on bookmarks in order, each as if it were sent alone. `p_operations` is an array of objects with the
-- arguments of `add_bookmark`, `add_unless_saved`, `edit_bookmark` or `delete_bookmark`. Returns the outcome and the
-- response of each; one of both is empty. A refused operation changes nothing, and the next ones still run. The account
-- stays locked until the last one has run.
--
-- With `p_is_atomic`, the first refused operation raises the error BM001, which undoes everything. Its detail holds the
-- place of the operation, counted from 0, and the outcome.
create or replace function write_batch(
  p_user_id bigint, p_token_hash bytea, p_operations jsonb, p_is_atomic boolean,
  p_free_limit bigint, p_tag_limit integer, p_trash_limit bigint,
  out outcome text, out outcomes text[], out responses text[], out existed boolean[]
)
language plpgsql as $$
declare
  v_operation jsonb;
  v_key text;
  v_hash bytea;
  v_tag_names text[];
  v_tag_keys text[];
  v_outcome text;
  v_response text;
  v_existed boolean;
begin
  if not lock_account(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  outcomes := '{}';
  responses := '{}';
  existed := '{}';
  for v_operation in select value from jsonb_array_elements(p_operations) loop
    v_key := v_operation ->> 'key';
    v_hash := decode(v_operation ->> 'hash', 'hex');
    v_existed := false;
    v_tag_names := null;
    v_tag_keys := null;
    if v_operation ? 'tag_keys' then
      v_tag_names := array(select jsonb_array_elements_text(v_operation -> 'tag_names'));
      v_tag_keys := array(select jsonb_array_elements_text(v_operation -> 'tag_keys'));
    end if;
    if v_operation ->> 'do' = 'add' and v_operation ->> 'on_duplicate' = 'add' then
      select written.outcome, written.bookmark into v_outcome, v_response
      from add_bookmark(
        p_user_id => p_user_id, p_token_hash => p_token_hash, p_bookmark => v_operation -> 'bookmark',
        p_tag_names => v_tag_names, p_tag_keys => v_tag_keys, p_free_limit => p_free_limit, p_tag_limit => p_tag_limit,
        p_idempotency_key => v_key, p_request_hash => v_hash
      ) written;
    elsif v_operation ->> 'do' = 'add' then
      select written.outcome, written.bookmark, written.existed into v_outcome, v_response, v_existed
      from add_unless_saved(
        p_user_id => p_user_id, p_token_hash => p_token_hash, p_bookmark => v_operation -> 'bookmark',
        p_tag_names => v_tag_names, p_tag_keys => v_tag_keys, p_free_limit => p_free_limit, p_tag_limit => p_tag_limit,
        p_idempotency_key => v_key, p_request_hash => v_hash,
        p_is_error => v_operation ->> 'on_duplicate' = 'error'
      ) written;
    elsif v_operation ->> 'do' = 'edit' then
      select written.outcome, written.response into v_outcome, v_response
      from edit_bookmark(
        p_user_id => p_user_id, p_token_hash => p_token_hash, p_id => (v_operation ->> 'id')::bigint,
        p_if_updated_at => (v_operation ->> 'if_updated_at')::timestamptz, p_change => v_operation -> 'change',
        p_tag_names => v_tag_names, p_tag_keys => v_tag_keys, p_tag_limit => p_tag_limit,
        p_idempotency_key => v_key, p_request_hash => v_hash
      ) written;
    else
      select written.outcome, written.response into v_outcome, v_response
      from delete_bookmark(
        p_user_id => p_user_id, p_token_hash => p_token_hash, p_id => (v_operation ->> 'id')::bigint,
        p_if_updated_at => (v_operation ->> 'if_updated_at')::timestamptz,
        p_trash_limit => case when (v_operation ->> 'trash')::boolean then p_trash_limit end,
        p_idempotency_key => v_key, p_request_hash => v_hash
      ) written;
    end if;
    if p_is_atomic and v_outcome is not null then
      raise exception using errcode = 'BM001', message = 'an operation of an atomic batch was refused',
        detail = cardinality(outcomes) || ' ' || v_outcome;
    end if;
    outcomes := outcomes || coalesce(v_outcome, '');
    responses := responses || coalesce(v_response, '');
    existed := existed || coalesce(v_existed, false);
  end loop;
end
$$;
