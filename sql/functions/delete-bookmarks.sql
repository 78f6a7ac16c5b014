-- Deletes the bookmarks that `choose_bookmarks` chooses. Their tags stay.
create or replace function delete_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_ids bigint[], p_if_updated_at timestamptz[],
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_ids bigint[];
  v_report text;
  v_gone_tags bigint[];
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  select chosen, report into v_ids, v_report from choose_bookmarks(p_user_id, p_ids, p_if_updated_at);
  v_gone_tags := gone_tags(p_user_id);
  with gone as (
    delete from bookmarks where user_id = p_user_id and id = any (v_ids) returning id, tag_ids
  ), counted as (
    -- An upsert of what is there: it needs no plan, where a join could go through all tags for each of them.
    insert into tags as t (user_id, id, name, name_key, bookmark_count)
    select p_user_id, carried.id, '', '', count(*)
    from gone
    cross join unnest(gone.tag_ids) as carried (id)
    where carried.id <> all (v_gone_tags)
    group by carried.id
    on conflict (user_id, id) do update set bookmark_count = t.bookmark_count - excluded.bookmark_count
  )
  select coalesce(array_agg(id order by id), '{}') into v_ids from gone;
  perform repack_texts(p_user_id, v_ids);
  perform note_changes(p_user_id, 'bookmark', v_ids);
  update accounts set bookmark_count = bookmark_count - cardinality(v_ids) where user_id = p_user_id;
  response := '{"deleted":true,' || v_report || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
