-- Puts one tag in the place of another on all bookmarks that carry that, and deletes it. `updated_at` stays, as when a tag is
-- renamed. Readers of changes are told of the deleted tag, and of each bookmark that got the other one.
create or replace function merge_tags(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_into_id bigint, out outcome text, out tag text
)
language plpgsql as $$
declare
  v_gaining bigint[];
  v_name text;
  v_count bigint;
begin
  perform from accounts where user_id = p_user_id for no key update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  if (select count(*) from tags where user_id = p_user_id and id in (p_id, p_into_id)) < 2 then
    outcome := 'tag_missing';
    return;
  end if;
  v_gaining := array(
    select id
    from bookmarks
    where user_id = p_user_id and tag_ids @> array[p_id] and not tag_ids @> array[p_into_id]
    order by id
  );
  delete from tags where user_id = p_user_id and id = p_id;
  update accounts set tag_count = tag_count - 1 where user_id = p_user_id;
  perform note_changes(p_user_id, 'tag', array[p_id]);
  perform note_changes(p_user_id, 'bookmark', v_gaining);
  update bookmarks b
  set tag_ids = case
      when tag_ids @> array[p_into_id] then array_remove(tag_ids, p_id)
      else array_replace(tag_ids, p_id, p_into_id)
    end,
    tags = (
      select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
      from tags t
      where t.user_id = p_user_id and t.id = any (b.tag_ids || p_into_id)
    )
  where user_id = p_user_id and tag_ids @> array[p_id];
  update tags t set bookmark_count = t.bookmark_count + cardinality(v_gaining)
  where t.user_id = p_user_id and t.id = p_into_id
  returning t.name, t.bookmark_count into v_name, v_count;
  tag := '{"id":' || p_into_id || ',"name":' || to_json(v_name) || ',"bookmark_count":' || v_count || '}';
end
$$;
