-- Returns the bookmarks with ids above `p_after` and up to `p_last`, in ascending order, as JSON texts separated by
-- commas. The page has at most `p_limit` bookmarks and `p_bytes` bytes, but at least one bookmark. `has_more` says
-- whether more bookmarks follow. `valid` says whether the token is valid; it is null if no token is given.
--
-- Every function that reads a page has a loop like this one. The query reads one bookmark more than the page may have,
-- to learn whether more follow. Postgres renders the bookmarks only as the loop fetches them: first 10 and then 50 at a
-- time. So a page of large bookmarks needs little memory, and few bookmarks are rendered in vain
-- (docs/decisions/0183-one-loop-for-a-page.md).
--
-- Each statement reads one table for one user and has no subquery. On a Citus cluster, only such statements keep their
-- plans (docs/decisions/0094-cost-of-citus.md).
--
-- Sorting is off, so that Postgres can only read in the order of the key. The planner's statistics may be older than
-- the latest import. If the planner expected a user to have few bookmarks, it would fetch and sort all of the user's
-- bookmarks for one page (docs/decisions/0093-plans-that-stay-good.md).
create or replace function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer, p_bytes integer, p_token_hash bytea default null,
  out valid boolean, out bookmarks text, out count integer, out last_id bigint, out has_more boolean
)
-- Postgres plans the statements of this function only once, because the plan is the same for all arguments. Planning
-- takes long, because the rendering is a long expression.
language plpgsql stable set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  v_id bigint;
  v_text text;
  v_texts text[] := '{}';
  v_bytes bigint := 0;
begin
  if p_token_hash is not null then
    perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
    valid := found;
  end if;
  count := 0;
  has_more := false;
  for v_id, v_text in
    select b.id, render_bookmark(row(b.*)::bookmarks)
    from bookmarks b
    where b.user_id = p_user_id and b.id > p_after and b.id <= p_last
    order by b.id
    limit p_limit + 1
  loop
    v_bytes := v_bytes + octet_length(v_text);
    has_more := count = p_limit or count > 0 and v_bytes > p_bytes;
    exit when has_more;
    v_texts := v_texts || v_text;
    count := count + 1;
    last_id := v_id;
  end loop;
  bookmarks := array_to_string(v_texts, ',');
end
$$;
