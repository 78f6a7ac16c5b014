-- Changes those fields of a bookmark that are in `p_change`. If `p_tag_keys` is not null, the function also replaces
-- the bookmark's tags. If `p_change` is empty and `p_tag_keys` is null, nothing changes, not even `updated_at`. If
-- `p_if_updated_at` is given and is not the bookmark's `updated_at`, the outcome is `bookmark_changed`.
--
-- `p_change` also holds what the service computes from the changed fields: `url_key` and `host` from the url, and the
-- lines of the search text (`url_line`, `title_line`, `comment_line`).
create or replace function edit_bookmark(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_if_updated_at timestamptz, p_change jsonb,
  p_tag_names text[], p_tag_keys text[], p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
-- Each statement finds its rows by a complete key, so one plan fits all calls. Without a kept plan, half of the time of
-- a call would go into planning.
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_old_tag_ids bigint[];
  v_updated_at timestamptz;
  v_tag_ids bigint[];
  v_tags text;
begin
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null or response is not null then
    return;
  end if;
  select tag_ids, updated_at into v_old_tag_ids, v_updated_at from bookmarks where user_id = p_user_id and id = p_id;
  if not found then
    outcome := 'bookmark_missing';
    return;
  end if;
  if v_updated_at <> p_if_updated_at then
    outcome := 'bookmark_changed';
    return;
  end if;

  if p_tag_keys is not null then
    v_tag_ids := ensure_tags(p_user_id, p_tag_names, p_tag_keys, p_tag_limit);
    if v_tag_ids is null then
      outcome := 'tag_limit';
      return;
    end if;
    -- Count the bookmark in the tags that it gains, and stop counting it in the tags that it loses.
    update tags
    set bookmark_count = bookmark_count + case when id = any (v_tag_ids) then 1 else -1 end
    where user_id = p_user_id and id = any (v_old_tag_ids || v_tag_ids)
      and (id = any (v_old_tag_ids)) <> (id = any (v_tag_ids));
    select render_tags(string_agg(render_tag(id, name), ',' order by name_key)) into v_tags
    from tags
    where user_id = p_user_id and id = any (v_tag_ids);
  end if;

  if p_change <> '{}' or p_tag_keys is not null then
    v_updated_at := next_updated_at(v_updated_at, clock_timestamp());
    update bookmarks
    set url = coalesce(p_change ->> 'url', url),
      url_key = coalesce((p_change ->> 'url_key')::uuid, url_key),
      host = coalesce(p_change ->> 'host', host),
      title = coalesce(p_change ->> 'title', title),
      comment = coalesce(p_change ->> 'comment', comment),
      tag_ids = coalesce(v_tag_ids, tag_ids),
      tags = coalesce(v_tags, tags),
      -- The search text has a line each for the url, the title and the comment. The lines of unchanged fields stay.
      search_text = coalesce(p_change ->> 'url_line', split_part(search_text, e'\n', 1))
        || e'\n' || coalesce(p_change ->> 'title_line', split_part(search_text, e'\n', 2))
        || e'\n' || coalesce(p_change ->> 'comment_line', split_part(search_text, e'\n', 3)),
      updated_at = v_updated_at
    where user_id = p_user_id and id = p_id;
    -- If the search text has changed, write it into the bookmark's block.
    if p_change ?| '{url_line,title_line,comment_line}' then
      perform repack_texts(p_user_id, array[p_id]);
    end if;
    perform note_changes(p_user_id, 'bookmark', array[p_id]);
  end if;

  select render_bookmark(row(b.*)::bookmarks, true) into response
  from bookmarks b
  where b.user_id = p_user_id and b.id = p_id;
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
