-- Returns the ids, in no order, of the bookmarks that have all of these tags, and whose search text contains all terms
-- and matches none of the `like` patterns in `p_without`. find-texts.sql describes `p_terms` and `p_patterns`.
create or replace function find_tagged(
  p_user_id bigint, p_tag_ids bigint[], p_terms text[], p_patterns text[], p_without text[]
)
  returns bigint[]
-- One plan serves all calls: it finds the bookmarks by the index on `tag_ids`. If Postgres planned each call, it would
-- search the statistics of all tags each time.
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_indexscan = off as $$
begin
  return array(
    select id
    from bookmarks
    where user_id = p_user_id and tag_ids @> p_tag_ids and matches_text(search_text, p_terms, p_patterns, p_without)
  );
end
$$;
