-- Deletes the bookmarks with these ids, and says which of the ids were not there. Their tags stay.
create or replace function delete_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_ids bigint[], out outcome text, out missing bigint[]
)
language plpgsql as $$
declare
  v_gone bigint[];
  v_gone_tags bigint[];
begin
  if not lock_account(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  v_gone_tags := gone_tags(p_user_id);
  with gone as (
    delete from bookmarks where user_id = p_user_id and id = any (p_ids) returning id, tag_ids
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
  select coalesce(array_agg(id order by id), '{}') into v_gone from gone;
  perform repack_texts(p_user_id, v_gone);
  perform note_changes(p_user_id, 'bookmark', v_gone);
  update accounts set bookmark_count = bookmark_count - cardinality(v_gone) where user_id = p_user_id;
  missing := array(select wanted.id from unnest(p_ids) as wanted (id) where wanted.id <> all (v_gone));
end
$$;
