-- Returns a page of the bookmarks whose search texts contain all terms, newest first, as JSON texts separated by
-- commas. The page has at most `p_limit` bookmarks and about `p_bytes` bytes, but at least one bookmark. `total` is the
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
  v_texts text[] := '{}';
  v_text text;
  v_count integer;
begin
  perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
  valid := found;
  v_ids := find_texts(p_user_id, p_terms, p_patterns, p_bits, null);
  total := cardinality(v_ids);
  v_ids := v_ids[p_offset + 1:p_offset + p_limit];
  v_count := cardinality(v_ids);
  if v_count = 0 then
    bookmarks := '';
    has_more := false;
    return;
  end if;
  for v_text in
    select
      -- null if the bookmark takes more than its share of the bytes
      case
        when bookmark_bytes(row(b.*)::bookmarks) <= p_bytes / p_limit
        then render_bookmark(row(b.*)::bookmarks)
      end
    from bookmarks b
    where b.user_id = p_user_id and b.id = any (v_ids)
    -- No index has the order of `b.id + 0`. If the query ordered by `b.id`, Postgres might read all bookmarks of the
    -- user in the order of the key.
    order by b.id + 0 desc
  loop
    v_texts := v_texts || v_text;
  end loop;
  bookmarks := array_to_string(v_texts, ',');
  if octet_length(bookmarks) > p_bytes or array_position(v_texts, null) is not null then
    select page.bookmarks, page.count into bookmarks, v_count from render_bookmarks(p_user_id, v_ids, p_bytes) page;
  end if;
  last_id := v_ids[v_count];
  has_more := p_offset + v_count < total;
end
$$;
