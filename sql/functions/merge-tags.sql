-- Puts one tag in the place of another on the next `p_limit` bookmarks that carry that, and deletes it once none is left:
-- `response` is null until then, and the caller calls again. `updated_at` stays, as when a tag is renamed. Readers of changes are
-- told of each bookmark that got the other tag, and of the deleted one. A caller that stops in between leaves every
-- bookmark and count as true as before, and whoever merges again goes on.
create or replace function merge_tags(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_into_id bigint, p_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_carrying bigint[];
  v_gaining bigint[];
  v_name text;
  v_count bigint;
  v_is_last boolean;
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
  v_carrying := array(
    select id from bookmarks where user_id = p_user_id and tag_ids @> array[p_id] order by id limit p_limit + 1
  );
  v_is_last := cardinality(v_carrying) <= p_limit;
  v_carrying := v_carrying[:p_limit];
  v_gaining := array(
    select id
    from bookmarks
    where user_id = p_user_id and id = any (v_carrying) and not tag_ids @> array[p_into_id]
    order by id
  );
  if v_is_last then
    delete from tags where user_id = p_user_id and id = p_id;
    update accounts set tag_count = tag_count - 1 where user_id = p_user_id;
    perform note_changes(p_user_id, 'tag', array[p_id]);
  else
    update tags set bookmark_count = bookmark_count - cardinality(v_carrying) where user_id = p_user_id and id = p_id;
  end if;
  -- Of a bookmark that has both already, the deleted tag tells enough; while that is still there, it does not.
  perform note_changes(p_user_id, 'bookmark', case when v_is_last then v_gaining else v_carrying end);
  update bookmarks b
  set tag_ids = case
      when tag_ids @> array[p_into_id] then array_remove(tag_ids, p_id)
      else array_replace(tag_ids, p_id, p_into_id)
    end,
    tags = (
      select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
      from tags t
      where t.user_id = p_user_id and t.id = any (array_remove(b.tag_ids, p_id) || p_into_id)
    )
  where user_id = p_user_id and id = any (v_carrying);
  update tags t set bookmark_count = t.bookmark_count + cardinality(v_gaining)
  where t.user_id = p_user_id and t.id = p_into_id
  returning t.name, t.bookmark_count into v_name, v_count;
  if v_is_last then
    response := '{"id":' || p_into_id || ',"name":' || to_json(v_name) || ',"bookmark_count":' || v_count || '}';
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
  end if;
end
$$;
