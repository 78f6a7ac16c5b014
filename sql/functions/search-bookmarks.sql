-- A page of the bookmarks that a search finds, in its order, as JSON texts with commas between: at most `p_limit`, and of
-- some `p_bytes` bytes, but one at least. `last_id` and `last_key` are the place of its last one in that order.
--
-- Without a place (`p_last_id` is null) the page begins after `p_offset` of them, and `total` counts all. With one it begins
-- behind that place, nothing is counted, and by `newest` and `oldest` the key leads from there on: what comes before is not
-- read again. `updated` and `title` have no index, which every add would pay for: each page looks through what matches.
-- Terms without a tag are looked for in the blocks of texts, where all that holds them is wanted.
create or replace function search_bookmarks(
  p_user_id bigint, p_terms text[], p_patterns text[], p_bits integer[], p_tag_keys text[], p_without_keys text[], p_untagged boolean,
  p_after timestamptz, p_before timestamptz, p_site text,
  p_sort text, p_offset bigint, p_last_id bigint, p_last_key text, p_limit integer, p_bytes integer,
  out bookmarks text, out count integer, out total bigint, out has_more boolean, out last_id bigint, out last_key text
)
-- Planned for what is asked: a plan for all searches could use no index. What is set within ends with the function.
language plpgsql stable set plan_cache_mode = force_custom_plan set enable_sort = on as $$
declare
  v_tag_ids bigint[];
  v_without bigint[];
  v_within bigint[];
  v_found bigint[];
  v_limit bigint := case when p_last_id is not null then p_limit + 1 end;
  v_ids bigint[];
begin
  bookmarks := '';
  count := 0;
  total := 0;
  has_more := false;
  if cardinality(p_tag_keys) > 0 then
    v_tag_ids := array(select id from tags where user_id = p_user_id and name_key = any (p_tag_keys));
    if cardinality(v_tag_ids) < cardinality(p_tag_keys) then
      return;
    end if;
  end if;
  if cardinality(p_without_keys) > 0 then
    v_without := array(select id from tags where user_id = p_user_id and name_key = any (p_without_keys));
  end if;
  if p_untagged then
    v_within := gone_tags(p_user_id);
  end if;
  if cardinality(p_terms) > 0 and v_tag_ids is null and (p_last_id is null or p_sort in ('updated', 'title')) then
    v_found := find_texts(p_user_id, p_terms, p_patterns, p_bits);
    p_terms := '{}';
    p_patterns := null;
  end if;
  -- Few carry a tag, and the index of tags leads to them. Else the order is that of the key: were they sorted, all would
  -- have to be read for each page.
  if v_tag_ids is null and p_last_id is not null and p_sort in ('newest', 'oldest') then
    perform set_config('enable_sort', 'off', true);
  end if;

  if p_sort = 'newest' then
    v_ids := array(
      select b.id
      from bookmarks b
      where b.user_id = p_user_id and b.id < coalesce(p_last_id, 9223372036854775807)
        and (v_found is null or b.id = any (v_found))
        and is_found(row(b.*)::bookmarks, p_terms, p_patterns, v_tag_ids, v_without, v_within, p_after, p_before, p_site)
      order by b.id desc
      limit v_limit
    );
  elsif p_sort = 'oldest' then
    v_ids := array(
      select b.id
      from bookmarks b
      where b.user_id = p_user_id and b.id > coalesce(p_last_id, 0)
        and (v_found is null or b.id = any (v_found))
        and is_found(row(b.*)::bookmarks, p_terms, p_patterns, v_tag_ids, v_without, v_within, p_after, p_before, p_site)
      order by b.id
      limit v_limit
    );
  elsif p_sort = 'updated' then
    v_ids := array(
      select b.id
      from bookmarks b
      where b.user_id = p_user_id
        and (p_last_id is null or (b.updated_at, b.id) < (p_last_key::timestamptz, p_last_id))
        and (v_found is null or b.id = any (v_found))
        and is_found(row(b.*)::bookmarks, p_terms, p_patterns, v_tag_ids, v_without, v_within, p_after, p_before, p_site)
      order by b.updated_at desc, b.id desc
      limit v_limit
    );
  else
    v_ids := array(
      select b.id
      from bookmarks b
      where b.user_id = p_user_id
        and (p_last_id is null or (title_key(row(b.*)::bookmarks) collate "C", b.id) > (p_last_key, p_last_id))
        and (v_found is null or b.id = any (v_found))
        and is_found(row(b.*)::bookmarks, p_terms, p_patterns, v_tag_ids, v_without, v_within, p_after, p_before, p_site)
      order by title_key(row(b.*)::bookmarks) collate "C", b.id
      limit v_limit
    );
  end if;

  if p_last_id is null then
    total := cardinality(v_ids);
    has_more := p_offset + p_limit < total;
    -- No user has 2^31 bookmarks, so a page beyond is empty.
    v_ids := v_ids[least(p_offset + 1, 2000000000)::integer:least(p_offset + p_limit, 2000000000)::integer];
  else
    has_more := cardinality(v_ids) > p_limit;
    v_ids := v_ids[1:p_limit];
  end if;
  select page.bookmarks, page.count into bookmarks, count from render_bookmarks(p_user_id, v_ids, p_bytes) page;
  has_more := has_more or count < cardinality(v_ids);
  last_id := v_ids[count];
  select
    case p_sort
      when 'updated' then render_time(b.updated_at)
      when 'title' then title_key(row(b.*)::bookmarks)
    end
  into last_key
  from bookmarks b
  where b.user_id = p_user_id and b.id = last_id;
end
$$;
