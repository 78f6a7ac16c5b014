-- Returns a page of the bookmarks that match a search, in the order `p_sort`, as JSON texts separated by commas. The
-- page has at most `p_limit` bookmarks and `p_bytes` bytes, but at least one bookmark. `last_id` and `last_key`
-- are the position of the page's last bookmark in this order.
--
-- `p_filter` holds the conditions on a bookmark, under the names that `searchFilter` uses (src/domain/search.ts). All
-- conditions are optional. `without_phrases` holds `like` patterns. Each alternative in `any` holds `tags`, and the
-- terms of the search together with its own as `terms`, `patterns` and `bits`. find-texts.sql describes these, and
-- `p_terms`, `p_patterns` and `p_bits`.
--
-- If `p_last_id` is null, the page begins at `p_offset`, and `total` is the number of all matches. Otherwise the page
-- begins after the position `p_last_id` and `p_last_key`, and matches are not counted. If a search requires no tag, an
-- index finds the position for `newest` and `oldest`, so that earlier rows are not read again. For `created` and
-- `created_oldest`, an index finds the position only if the search also has no terms. `updated` and `title` have no
-- index, because every added bookmark would need an entry in such an index. So each page in these orders reads all
-- matches.
--
-- If a search has no conditions and no terms, `total` is the account's counter of bookmarks. If a search has terms or
-- alternatives but requires no tag, `find_texts` or `find_any` finds the matches in the blocks of `search_blocks`, unless
-- an index finds the position. Excluded phrases alone do not use the blocks, because nearly all bookmarks match.
create or replace function search_bookmarks(
  p_user_id bigint, p_terms text[], p_patterns text[], p_bits integer[], p_filter jsonb,
  p_sort text, p_offset bigint, p_last_id bigint, p_last_key text, p_limit integer, p_bytes integer,
  out bookmarks text, out count integer, out total bigint, out has_more boolean, out last_id bigint, out last_key text
)
-- Postgres plans each statement for the values of the call. It then drops conditions whose value is null, and all sort
-- orders except the requested one. The function changes `enable_sort`. Because of the `set` clause, Postgres restores
-- it when the function ends.
language plpgsql stable set plan_cache_mode = force_custom_plan set enable_sort = on as $$
declare
  v_filter record;
  v_tag_ids bigint[];
  v_excluded_tag_ids bigint[];
  v_any jsonb;
  -- the bookmarks that match the conditions evaluated so far: those on the text, `tag_under`, or both; null as long as
  -- neither has been evaluated
  v_candidate_ids bigint[];
  v_ids_under bigint[];
  v_is_all boolean;
  v_is_exact boolean;
  -- How many matches are needed. Null means all of them, because they are counted.
  v_limit bigint := case when p_last_id is not null then p_limit + 1 end;
  v_ids bigint[];
begin
  bookmarks := '';
  count := 0;
  total := 0;
  has_more := false;
  if p_sort not in ('newest', 'oldest', 'created', 'created_oldest', 'updated', 'title') then
    raise 'unknown sort: %', p_sort;
  end if;
  select *
  into v_filter
  from jsonb_to_record(p_filter) as filter(
    tag text, tags text[], tag_under text[], without_tags text[], untagged boolean,
    created_after timestamptz, created_before timestamptz, updated_after timestamptz, site text,
    without_phrases text[], "any" jsonb
  );

  if v_filter.tag is not null and v_filter.tag <> all (coalesce(v_filter.tags, '{}')) then
    v_filter.tags := v_filter.tags || v_filter.tag;
  end if;
  if cardinality(v_filter.tags) > 0 then
    v_tag_ids := array(select id from tags where user_id = p_user_id and name_key = any (v_filter.tags));
    -- A required tag does not exist, so nothing matches.
    if cardinality(v_tag_ids) < cardinality(v_filter.tags) then
      return;
    end if;
  end if;
  if cardinality(v_filter.without_tags) > 0 then
    v_excluded_tag_ids := array(
      select id from tags where user_id = p_user_id and name_key = any (v_filter.without_tags)
    );
  end if;
  if v_filter.any is not null then
    v_any := possible_alternatives(p_user_id, v_filter.any);
    if v_any = '[]' then
      return;
    end if;
  end if;
  if (cardinality(p_terms) > 0 or v_any is not null)
    and v_tag_ids is null and (p_last_id is null or p_sort not in ('newest', 'oldest'))
  then
    -- From here on, `v_candidate_ids` replaces the conditions on the text and the alternatives.
    v_candidate_ids := case
      when v_any is null then find_texts(p_user_id, p_terms, p_patterns, p_bits, v_filter.without_phrases)
      else find_any(p_user_id, v_any, v_filter.without_phrases)
    end;
    p_terms := '{}';
    p_patterns := null;
    v_filter.without_phrases := null;
    v_any := null;
  end if;
  if cardinality(v_filter.tag_under) > 0 then
    v_ids_under := find_under(p_user_id, v_filter.tag_under);
    v_candidate_ids := case
      when v_candidate_ids is null then v_ids_under
      else array(select unnest(v_candidate_ids) intersect select unnest(v_ids_under))
    end;
  end if;
  v_is_all := cardinality(p_terms) = 0 and v_candidate_ids is null and p_filter = '{}';
  if p_last_id is null and v_is_all then
    v_limit := p_offset + p_limit;
  end if;
  -- If tags or candidate ids select the bookmarks, Postgres may find these first and then sort them. Without such a
  -- selection, and if not all matches are needed, Postgres must read all orders except `updated` and `title` from an
  -- index. A sort would read all bookmarks of the user for each page.
  if v_tag_ids is null and v_candidate_ids is null and v_limit is not null
    and p_sort not in ('updated', 'title')
  then
    perform set_config('enable_sort', 'off', true);
  end if;

  -- True if `v_candidate_ids` holds all matches and nothing else. No other condition is then tested.
  v_is_exact := v_candidate_ids is not null
    and p_terms = '{}' and v_filter.without_phrases is null and v_any is null
    and p_filter - '{tag_under, without_phrases, any}'::text[] = '{}';
  if v_is_exact and p_sort in ('newest', 'oldest') then
    -- In these orders the ids are enough, so the bookmarks are not read.
    v_ids := array(
      select id
      from unnest(v_candidate_ids) id
      where p_last_id is null or case when p_sort = 'newest' then id < p_last_id else id > p_last_id end
      -- For `newest`, the first expression is null for all rows, so only the second one counts.
      order by case when p_sort = 'oldest' then id end, id desc
      limit v_limit
    );
  else
    v_ids := array(
      select b.id
      from bookmarks b
      where b.user_id = p_user_id
        and case
          when p_last_id is null then true
          when p_sort = 'newest' then b.id < p_last_id
          when p_sort = 'oldest' then b.id > p_last_id
          when p_sort = 'created' then (b.created_at, b.id + 0) < (p_last_key::timestamptz, p_last_id)
          when p_sort = 'created_oldest' then (b.created_at, b.id + 0) > (p_last_key::timestamptz, p_last_id)
          when p_sort = 'updated' then (b.updated_at, b.id) < (p_last_key::timestamptz, p_last_id)
          when p_sort = 'title' then (title_key(row(b.*)::bookmarks) collate "C", b.id) > (p_last_key, p_last_id)
        end
        and (v_candidate_ids is null or b.id = any (v_candidate_ids))
        and matches_text(b.search_text, p_terms, p_patterns, v_filter.without_phrases)
        and (v_any is null or exists (
          select
          from jsonb_to_recordset(v_any) as alternative(terms text[], patterns text[], tag_ids bigint[])
          where b.tag_ids @> alternative.tag_ids
            and matches_text(b.search_text, alternative.terms, alternative.patterns, null)
        ))
        and (v_tag_ids is null or b.tag_ids @> v_tag_ids)
        and (v_excluded_tag_ids is null or not b.tag_ids && v_excluded_tag_ids)
        and (v_filter.untagged is not true or b.tag_ids = '{}')
        and (v_filter.created_after is null or b.created_at > v_filter.created_after)
        and (v_filter.created_before is null or b.created_at < v_filter.created_before)
        and (v_filter.updated_after is null or b.updated_at > v_filter.updated_after)
        and (v_filter.site is null or b.host = v_filter.site or right(b.host, length(v_filter.site) + 1) = '.' || v_filter.site)
      order by
        case when p_sort = 'created' then b.created_at end desc,
        case when p_sort = 'created_oldest' then b.created_at end,
        case when p_sort = 'updated' then b.updated_at end desc,
        case when p_sort = 'title' then title_key(row(b.*)::bookmarks) collate "C" end,
        -- `id + 0` is a column of the index `bookmarks_created`.
        case when p_sort in ('oldest', 'title') then b.id when p_sort = 'created_oldest' then b.id + 0 end,
        case when p_sort in ('newest', 'updated') then b.id when p_sort = 'created' then b.id + 0 end desc
      limit v_limit
    );
  end if;

  if p_last_id is null then
    total := case
      when v_is_all then (select bookmark_count from accounts where user_id = p_user_id)
      else cardinality(v_ids)
    end;
    has_more := p_offset + p_limit < total;
    -- Positions in arrays are below 2^31, so positions above 2,000,000,000 are reduced to this number. No user has so
    -- many bookmarks, so the page is empty anyway.
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
      when 'created' then render_time(b.created_at)
      when 'created_oldest' then render_time(b.created_at)
      when 'updated' then render_time(b.updated_at)
      when 'title' then title_key(row(b.*)::bookmarks)
    end
  into last_key
  from bookmarks b
  where b.user_id = p_user_id and b.id = last_id;
end
$$;
