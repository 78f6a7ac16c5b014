-- Takes one step of a rename of a tag. With `p_with_children`, the tags below it are renamed too; for example, `a/b` is
-- below `a`. If `p_id` is null, `p_path_key` is the normalized name of the tag. This tag need not exist if there are tags
-- below it.
--
-- The first step (`p_after` is 0) renames all of these tags, or none, and returns the response. Each step takes the next
-- bookmarks that have a renamed tag, beginning with the first id above `p_after`, and rewrites their tags. Until
-- `last_id` is null, the caller must call again with `last_id` as `p_after`.
--
-- After each step, every bookmark shows either the old or the new names. If a rename was interrupted, the client
-- finishes it by sending the same request again. A request by path then finds no tag to rename. It rewrites the
-- remaining bookmarks all the same, and `response` is null in all its steps.
--
-- If the new name of a tag below the given one would be too long, `detail` is the tag's present name. If another tag
-- already has one of the new names, `detail` is the name of that other tag.
create or replace function rename_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_path_key text, p_with_children boolean,
  p_name text, p_name_key text, p_after bigint, p_work integer, p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text, out last_id bigint, out detail text
)
-- Postgres plans each statement for the values of the call, so that it puts a long list of tags into a hash table.
language plpgsql set plan_cache_mode = force_custom_plan as $$
declare
  -- the tag that gets the name `p_name`; null if it does not exist
  v_id bigint := p_id;
  v_old_key text := p_path_key;
  -- A regular expression for the parent's name and the next slash, at the beginning of a child's name. The expression
  -- counts slashes and not characters, because a name and its normalized name may differ in length.
  v_prefix text;
  -- the ids of the tags to rename, and their new normalized names in any order
  v_ids bigint[] := '{}';
  v_keys text[];
  v_next record;
  v_rewritten_ids bigint[];
begin
  -- The first step keeps the response. So if the request has a key, its later steps find the response too.
  select begun.outcome, begun.response into outcome, response
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  if outcome is not null then
    return;
  end if;
  if p_after = 0 and response is null then
    if p_id is null then
      select id into v_id from tags where user_id = p_user_id and name_key = p_path_key;
    else
      select name_key into v_old_key from tags where user_id = p_user_id and id = p_id;
      if not found then
        outcome := 'tag_missing';
        return;
      end if;
    end if;
    v_ids := case when p_with_children then tag_ids_under(p_user_id, v_old_key) else array[p_id] end;
  end if;
  if v_ids <> '{}' then
    v_prefix := '^([^/]*/){' || 1 + length(v_old_key) - length(replace(v_old_key, '/', '')) || '}';
    select
      array_agg(
        case when id = v_id then p_name_key else p_name_key || '/' || regexp_replace(name_key, v_prefix, '') end
      ),
      min(name) filter (
        where id is distinct from v_id and length(p_name || '/' || regexp_replace(name, v_prefix, '')) > limit_of('tag_name')
      )
    into v_keys, detail
    from tags
    where user_id = p_user_id and id = any (v_ids);
    if detail is not null then
      outcome := 'child_name_too_long';
      return;
    end if;
    select min(name) into detail
    from tags
    where user_id = p_user_id and name_key = any (v_keys) and id <> all (v_ids);
    if detail is not null then
      outcome := case when p_with_children then 'child_exists' else 'tag_exists' end;
      return;
    end if;
    -- The new name of one tag may be the old name of another tag that is renamed too. Tags with such old names first
    -- get temporary names, which begin with a blank. No real name begins with a blank.
    if p_with_children and p_name_key <> v_old_key then
      update tags set name_key = ' ' || name_key
      where user_id = p_user_id and id = any (v_ids) and name_key = any (v_keys);
    end if;
    update tags
    set name = case when id = v_id then p_name else p_name || '/' || regexp_replace(name, v_prefix, '') end,
      name_key = case when id = v_id then p_name_key else p_name_key || '/' || regexp_replace(name_key, v_prefix, '') end
    where user_id = p_user_id and id = any (v_ids);
    response := case
      when p_id is null then '{"name":' || to_json(p_name) || ',"renamed":' || cardinality(v_ids) || '}'
      else render_tag(p_id, p_name)
    end;
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
  else
    -- A later step and a repeated request find the tags below `p_name` by their new names. If another request has
    -- renamed one of these tags meanwhile, that request rewrites the bookmarks with that tag. `v_ids` always contains
    -- `p_id`, even if another request has renamed the tag `p_id` meanwhile.
    v_ids := array(
      select unnest(tag_ids_under(p_user_id, p_name_key)) where p_with_children
      union
      select p_id where p_id is not null
    );
  end if;
  v_next := next_carrying(p_user_id, v_ids, p_after, p_work);
  last_id := case when v_next.has_more then v_next.ids[cardinality(v_next.ids)] end;
  with shown as materialized (
    select b.id, (
      select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
      from tags t
      where t.user_id = p_user_id and t.id = any (b.tag_ids)
    ) as tags
    from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_next.ids)
  ), rewritten as (
    update bookmarks b
    set tags = shown.tags
    from shown
    where b.user_id = p_user_id and b.id = shown.id and b.tags <> shown.tags
    returning b.tag_ids
  )
  select array(
    select distinct tag.id
    from rewritten
    cross join unnest(rewritten.tag_ids) as tag (id)
    where tag.id = any (v_ids)
  ) into v_rewritten_ids;
  -- The first step records all renamed tags. A later step, or a repeated request, records the tags of the bookmarks
  -- that it rewrote, because a reader of changes may have received these bookmarks with the old names meanwhile.
  perform note_changes(p_user_id, 'tag', case when v_keys is null then v_rewritten_ids else v_ids end);
end
$$;
