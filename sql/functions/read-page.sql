-- Returns the bookmarks with ids above `p_after` and up to `p_last`, in ascending order, as JSON texts separated by
-- commas. The page has at most `p_limit` bookmarks and about `p_bytes` bytes, but at least one bookmark. `has_more`
-- says whether more bookmarks follow. `valid` says whether the token is valid; it is null if no token is given.
--
-- Each statement reads one table for one user and has no subquery. On a Citus cluster, only such statements keep their
-- plans (docs/decisions/0094-cost-of-citus.md).
--
-- Sorting is off, so that Postgres can only read in the order of the key. The planner's statistics may be older than
-- the latest import. If the planner expected a user to have few bookmarks, it would fetch and sort all of the user's
-- bookmarks for one page (docs/decisions/0093-plans-that-stay-good.md).
--
-- Few pages come near the limit of bytes. So the function first reads and renders the page in one pass. This pass
-- renders no bookmark that takes more than its share of the bytes (`p_bytes / p_limit`). If there is such a bookmark,
-- or if the page is too large, `read_large_page` reads the page again. Summing the sizes before rendering would make
-- every page slower.
--
-- Most calls come from polls, and find nothing. They end after one lookup by the key.
create or replace function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer, p_bytes integer, p_token_hash bytea default null,
  out valid boolean, out bookmarks text, out count integer, out last_id bigint, out has_more boolean
)
-- Postgres plans the statements of this function only once, because the plan is the same for all arguments. Planning
-- takes long, because the rendering is a long expression.
language plpgsql stable set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  v_texts text[] := '{}';
  v_text text;
begin
  if p_token_hash is not null then
    perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
    valid := found;
  end if;
  perform from bookmarks where user_id = p_user_id and id > p_after and id <= p_last order by id limit 1;
  if not found then
    bookmarks := '';
    count := 0;
    has_more := false;
    return;
  end if;
  for last_id, v_text in
    select b.id,
      -- null if the bookmark takes more than its share of the bytes
      case
        when bookmark_bytes(row(b.*)::bookmarks) <= p_bytes / p_limit
        then render_bookmark(row(b.*)::bookmarks)
      end
    from bookmarks b
    where b.user_id = p_user_id and b.id > p_after and b.id <= p_last
    order by b.id
    limit p_limit
  loop
    v_texts := v_texts || v_text;
  end loop;
  count := cardinality(v_texts);
  bookmarks := array_to_string(v_texts, ',');
  if octet_length(bookmarks) > p_bytes or array_position(v_texts, null) is not null then
    select page.bookmarks, page.count, page.last_id into bookmarks, count, last_id
    from read_large_page(p_user_id, p_after, last_id, p_bytes) page;
  elsif count < p_limit then
    has_more := false;
    return;
  end if;
  -- This statement does not use `exists`, because `exists` would drop the order. The planner could then scan the table
  -- from its beginning, through the rows of other users.
  perform from bookmarks where user_id = p_user_id and id > last_id and id <= p_last order by id limit 1;
  has_more := found;
end
$$;
