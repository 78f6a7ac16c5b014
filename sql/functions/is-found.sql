-- Whether a search finds a bookmark; null where the search does not ask. The planner puts this expression in place of the
-- call, and leaves out of it what is null. At most three terms come by themselves, for `strpos` is the fastest test, and
-- further ones as patterns.
create or replace function is_found(
  p_bookmark bookmarks, p_terms text[], p_patterns text[], p_tag_ids bigint[], p_without bigint[], p_within bigint[],
  p_after timestamptz, p_before timestamptz, p_site text
) returns boolean
language sql immutable as $$
  select (p_terms[1] is null or strpos(p_bookmark.search_text, p_terms[1]) > 0)
    and (p_terms[2] is null or strpos(p_bookmark.search_text, p_terms[2]) > 0)
    and (p_terms[3] is null or strpos(p_bookmark.search_text, p_terms[3]) > 0)
    and (p_patterns is null or p_bookmark.search_text like all (p_patterns))
    and (p_tag_ids is null or p_bookmark.tag_ids @> p_tag_ids)
    and (p_without is null or not p_bookmark.tag_ids && p_without)
    and (p_within is null or p_bookmark.tag_ids <@ p_within)
    and (p_after is null or p_bookmark.created_at > p_after)
    and (p_before is null or p_bookmark.created_at < p_before)
    and (p_site is null or p_bookmark.host = p_site or right(p_bookmark.host, length(p_site) + 1) = '.' || p_site)
$$;
