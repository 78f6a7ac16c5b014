-- Returns the bookmarks after one id and up to another, by ascending id, as JSON texts with commas between. The page
-- has at most `p_limit` bookmarks and about `p_bytes` bytes, but at least one bookmark. `has_more` says whether others
-- follow. `valid` says whether the token is valid; null without a token.
--
-- Each statement reads one table for one user and has no subquery. On a Citus cluster only such statements keep their
-- plans (docs/decisions/0094-cost-of-citus.md).
--
-- It must not sort, so that its plan can only read in the order of the key. The planner's statistics may be older than
-- the last import. If the planner expected few bookmarks of a user, it would fetch and sort all of them for one page
-- (docs/decisions/0093-plans-that-stay-good.md).
--
-- Few pages come near the limit of bytes. If each bookmark takes no more than its share (`p_bytes / p_limit`), the page
-- is read and rendered in one pass. Summing the sizes before rendering would cost every page more.
--
-- Most pages belong to polls that find nothing. They end after one probe of the key.
create or replace function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer, p_bytes integer, p_token_hash bytea default null,
  out valid boolean, out bookmarks text, out count integer, out last_id bigint, out has_more boolean
)
-- Planned once: the rendering is a long expression, and its plan is the same for all values.
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
  -- `exists` would drop the order, and the planner could then scan the table from its beginning, through the rows of
  -- other users.
  perform from bookmarks where user_id = p_user_id and id > last_id and id <= p_last order by id limit 1;
  has_more := found;
end
$$;
