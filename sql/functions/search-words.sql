-- Returns a page of the bookmarks whose search texts contain all terms, newest first, as JSON texts separated by
-- commas. The page has at most `p_limit` bookmarks and `p_bytes` bytes, but at least one bookmark. `total` is the
-- number of all matches, and `valid` says whether the token is valid. find-texts.sql describes `p_terms`, `p_patterns`
-- and `p_bits`.
create or replace function search_words(
  p_user_id bigint, p_token_hash bytea, p_terms text[], p_patterns text[], p_bits integer[],
  p_offset integer, p_limit integer, p_bytes integer,
  out valid boolean, out total bigint, out bookmarks text, out has_more boolean, out last_id bigint
)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  v_ids bigint[];
  v_count integer;
begin
  perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
  valid := found;
  v_ids := find_texts(p_user_id, p_terms, p_patterns, p_bits, null);
  total := cardinality(v_ids);
  v_ids := v_ids[p_offset + 1:p_offset + p_limit];
  select page.bookmarks, page.count into bookmarks, v_count from render_bookmarks(p_user_id, v_ids, p_bytes) page;
  last_id := v_ids[v_count];
  has_more := p_offset + v_count < total;
end
$$;
