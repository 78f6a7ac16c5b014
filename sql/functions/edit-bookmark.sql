-- Changes the fields that `p_change` holds, and the tags where some are given; with neither it changes nothing,
-- `updated_at` included. `url_line`, `title_line` and `comment_line` are the folded lines of the search text, and `url_key`
-- and `host` come with the url.
create or replace function edit_bookmark(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_change jsonb, p_tag_names text[], p_tag_keys text[],
  p_tag_limit integer,
  out outcome text, out bookmark text
)
-- Each statement finds its rows by whole keys: the plan that fits all calls is kept, for planning would take half the time.
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_old_ids bigint[];
  v_tag_ids bigint[];
  v_tags text;
  v_now timestamptz;
  v_stale bigint[];
begin
  select stale_tags into v_stale from accounts where user_id = p_user_id for no key update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;

  if p_tag_keys is not null then
    select tag_ids into v_old_ids from bookmarks where user_id = p_user_id and id = p_id;
    if not found then
      outcome := 'bookmark_missing';
      return;
    end if;
    v_tag_ids := ensure_tags(p_user_id, p_tag_names, p_tag_keys, p_tag_limit);
    if v_tag_ids is null then
      outcome := 'tag_limit';
      return;
    end if;
    update tags
    set bookmark_count = bookmark_count + case when id = any (v_tag_ids) then 1 else -1 end
    where user_id = p_user_id and id = any (v_old_ids || v_tag_ids)
      and (id = any (v_old_ids)) <> (id = any (v_tag_ids));
    select render_tags(string_agg(render_tag(id, name), ',' order by name_key)) into v_tags
    from tags
    where user_id = p_user_id and id = any (v_tag_ids);
  end if;

  if p_change <> '{}' or p_tag_keys is not null then
    v_now := date_trunc('milliseconds', clock_timestamp());
    update bookmarks
    set url = coalesce(p_change ->> 'url', url),
      url_key = coalesce((p_change ->> 'url_key')::uuid, url_key),
      host = coalesce(p_change ->> 'host', host),
      title = coalesce(p_change ->> 'title', title),
      comment = coalesce(p_change ->> 'comment', comment),
      tag_ids = coalesce(v_tag_ids, tag_ids),
      tags = coalesce(v_tags, tags),
      search_text = coalesce(p_change ->> 'url_line', split_part(search_text, e'\n', 1))
        || e'\n' || coalesce(p_change ->> 'title_line', split_part(search_text, e'\n', 2))
        || e'\n' || coalesce(p_change ->> 'comment_line', split_part(search_text, e'\n', 3)),
      updated_at = v_now
    where user_id = p_user_id and id = p_id;
    if found then
      if p_change ?| '{url_line,title_line,comment_line}' then
        perform repack_texts(p_user_id, array[p_id]);
      end if;
      perform note_changes(p_user_id, 'bookmark', array[p_id]);
    end if;
  end if;

  select render_bookmark(row(b.*)::bookmarks, v_stale, true) into bookmark
  from bookmarks b
  where b.user_id = p_user_id and b.id = p_id;
  if not found then
    outcome := 'bookmark_missing';
  end if;
end
$$;
