-- Returns a page of a user's bookmarks from an offset, newest first, as JSON texts separated by commas. The page has at
-- most `p_limit` bookmarks and about `p_bytes` bytes, but at least one bookmark. `total` is the number of all bookmarks
-- of the user, and `valid` says whether the token is valid. The bookmarks before the offset are neither fetched nor
-- rendered.
--
-- read-page.sql says why this function must not sort, why it renders small bookmarks in one pass, and why it has no
-- subqueries.
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
  v_ids bigint[] := '{}';
  v_texts text[] := '{}';
  v_id bigint;
  v_text text;
  v_count integer;
begin
  perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
  valid := found;
  select bookmark_count into total from accounts where user_id = p_user_id;
  if p_offset > 0 then
    v_first_id := newest_at(p_user_id, p_offset);
  end if;
  for v_id, v_text in
    select b.id,
      -- null if the bookmark takes more than its share of the bytes
      case
        when bookmark_bytes(row(b.*)::bookmarks) <= p_bytes / p_limit
        then render_bookmark(row(b.*)::bookmarks)
      end
    from bookmarks b
    where b.user_id = p_user_id and b.id <= v_first_id
    order by b.id desc
    limit p_limit
  loop
    v_ids := v_ids || v_id;
    v_texts := v_texts || v_text;
  end loop;
  v_count := cardinality(v_ids);
  bookmarks := array_to_string(v_texts, ',');
  if octet_length(bookmarks) > p_bytes or array_position(v_texts, null) is not null then
    select page.bookmarks, page.count into bookmarks, v_count from render_bookmarks(p_user_id, v_ids, p_bytes) page;
  end if;
  last_id := v_ids[v_count];
  has_more := v_count > 0 and p_offset + v_count < total;
end
$$;
