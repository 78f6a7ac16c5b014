-- Renames a tag, and renders the tags of the first bookmarks after `p_after` that carry it. `response` is null until the last
-- bookmark is written, and the caller calls again with `last_id` as `p_after`. Each step leaves every bookmark with the old or
-- the new name. The same rename may be repeated: it finishes one that was interrupted.
create or replace function rename_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_name text, p_name_key text, p_after bigint, p_work integer,
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
  if p_after = 0 then
    if not exists (select from tags where user_id = p_user_id and id = p_id) then
      outcome := 'tag_missing';
      return;
    end if;
    if exists (select from tags where user_id = p_user_id and name_key = p_name_key and id <> p_id) then
      outcome := 'tag_exists';
      return;
    end if;
    update tags set name = p_name, name_key = p_name_key where user_id = p_user_id and id = p_id;
  end if;
  last_id := rewrite_tags(p_user_id, array[p_id], p_after, p_work);
  -- Noted again at the end: between the steps a reader of changes may have been sent bookmarks with the old name.
  if p_after = 0 or last_id is null then
    perform note_changes(p_user_id, 'tag', array[p_id]);
  end if;
  if last_id is null then
    response := render_tag(p_id, p_name);
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
  end if;
end
$$;
