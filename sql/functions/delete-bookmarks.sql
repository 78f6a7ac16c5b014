-- Calls `choose_bookmarks`, and deletes the chosen bookmarks, or moves them to the trash if `p_trash_limit` is given (see
-- `move_to_trash`). No tag is deleted, even if no other bookmark has it.
create or replace function delete_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_ids bigint[], p_if_updated_at timestamptz[],
  p_trash_limit bigint,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_chosen_ids bigint[];
  v_deleted_ids bigint[];
  v_report text;
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  select chosen, report into v_chosen_ids, v_report from choose_bookmarks(p_user_id, p_ids, p_if_updated_at);
  if p_trash_limit is not null then
    perform move_to_trash(p_user_id, v_chosen_ids, p_trash_limit);
  end if;
  with deleted as (
    delete from bookmarks where user_id = p_user_id and id = any (v_chosen_ids) returning id, tag_ids
  ), updated_tags as (
    update tags t set bookmark_count = t.bookmark_count - tag_counts.bookmarks
    from (
      select unnest(deleted.tag_ids) as id, count(*) as bookmarks from deleted group by 1
    ) tag_counts
    where t.user_id = p_user_id and t.id = tag_counts.id
  )
  select coalesce(array_agg(id order by id), '{}') into v_deleted_ids from deleted;
  perform repack_texts(p_user_id, v_deleted_ids);
  perform note_changes(p_user_id, 'bookmark', v_deleted_ids);
  update accounts set bookmark_count = bookmark_count - cardinality(v_deleted_ids) where user_id = p_user_id;
  response := '{"deleted":true,' || v_report || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
