-- Returns a page of a user's bookmarks from an offset, newest first, as JSON texts separated by commas. The page has at
-- most `p_limit` bookmarks and `p_bytes` bytes, but at least one bookmark. `total` is the number of all bookmarks of the
-- user, and `valid` says whether the token is valid. The bookmarks before the offset are neither fetched nor rendered.
--
-- read-page.sql explains the loop, and why this function must not sort and has no subqueries.
create or replace function read_newest(
  p_user_id bigint, p_token_hash bytea, p_offset bigint, p_limit integer, p_bytes integer,
  out valid boolean, out total bigint, out bookmarks text, out has_more boolean, out last_id bigint
)
-- Postgres plans the statements of this function only once, because the plan is the same for all arguments. Planning
-- takes long, because the rendering is a long expression.
language plpgsql stable set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  -- the highest id on the page; without an offset, the largest `bigint`
  v_first_id bigint := 9223372036854775807;
  v_id bigint;
  v_text text;
  v_texts text[] := '{}';
  v_count integer := 0;
  v_bytes bigint := 0;
begin
  perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
  valid := found;
  select bookmark_count into total from accounts where user_id = p_user_id;
  if p_offset > 0 then
    v_first_id := newest_at(p_user_id, p_offset);
  end if;
  has_more := false;
  for v_id, v_text in
    select b.id, render_bookmark(row(b.*)::bookmarks)
    from bookmarks b
    where b.user_id = p_user_id and b.id <= v_first_id
    order by b.id desc
    limit p_limit + 1
  loop
    v_bytes := v_bytes + octet_length(v_text);
    has_more := v_count = p_limit or v_count > 0 and v_bytes > p_bytes;
    exit when has_more;
    v_texts := v_texts || v_text;
    v_count := v_count + 1;
    last_id := v_id;
  end loop;
  bookmarks := array_to_string(v_texts, ',');
end
$$;
