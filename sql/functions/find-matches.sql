-- Returns the ids of the bookmarks that meet all conditions, in the order `p_sort`: those after the position `p_last_id`
-- and `p_last_key`, if it is given, and at most `p_limit` of them. `p_limit` is null if all are needed.
--
-- search-bookmarks.sql describes the parameters. `p_any` is the result of `possible_alternatives`. If `p_candidate_ids`
-- is given, only these bookmarks can match. `p_filter` holds the other conditions.
create or replace function find_matches(
  p_user_id bigint, p_terms text[], p_patterns text[], p_any jsonb, p_filter jsonb,
  p_candidate_ids bigint[], p_sort text, p_last_id bigint, p_last_key text, p_limit bigint
)
  returns bigint[]
-- Postgres plans the statement for the values of the call. It then drops conditions whose value is null, and all sort
-- orders except the requested one. The function changes `enable_sort`. Because of the `set` clause, Postgres restores
-- it when the function ends.
language plpgsql stable set plan_cache_mode = force_custom_plan set enable_sort = on as $$
declare
  v_filter record;
  v_excluded_tag_ids bigint[];
begin
  if p_sort not in ('newest', 'oldest', 'created', 'created_oldest', 'updated', 'title') then
    raise 'unknown sort: %', p_sort;
  end if;
  select *
  into v_filter
  from jsonb_to_record(p_filter) as filter(
    without_tags text[], untagged boolean, created_after timestamptz, created_before timestamptz,
    updated_after timestamptz, site text, without_phrases text[]
  );
  if v_filter.without_tags is not null then
    v_excluded_tag_ids := array(
      select id from tags where user_id = p_user_id and name_key = any (v_filter.without_tags)
    );
  end if;
  -- If candidate ids are given, Postgres may find these bookmarks first and then sort them. Without candidates, and if
  -- not all matches are needed, Postgres must read all orders except `updated` and `title` from an index. A sort would
  -- read all bookmarks of the user for each page.
  if p_candidate_ids is null and p_limit is not null and p_sort not in ('updated', 'title') then
    perform set_config('enable_sort', 'off', true);
  end if;
  return array(
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
      and (p_candidate_ids is null or b.id = any (p_candidate_ids))
      and matches_text(b.search_text, p_terms, p_patterns, v_filter.without_phrases)
      and (p_any is null or exists (
        select
        from jsonb_to_recordset(p_any) as alternative(terms text[], patterns text[], tag_ids bigint[])
        where b.tag_ids @> alternative.tag_ids
          and matches_text(b.search_text, alternative.terms, alternative.patterns, null)
      ))
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
    limit p_limit
  );
end
$$;
