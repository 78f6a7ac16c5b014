-- The bookmarks after one id and up to another, by ascending id, as JSON texts with commas between. At most `p_limit`
-- bookmarks and about `p_bytes` bytes in total, but at least one bookmark. `has_more` says whether others follow.
--
-- It must not sort, so that it can only walk along the key. The planner's statistics may be older than the last import.
-- If it expects few bookmarks of a user, it would gather and sort all of them for one page
-- (docs/decisions/0093-plans-that-stay-good.md).
--
-- Few pages come near the limit of bytes. If each bookmark takes no more than its share, the page is read and rendered
-- in one pass. Summing the sizes before rendering would cost every page more.
--
-- Most pages belong to polls that find nothing. They end after one probe of the key.
create or replace function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer, p_bytes integer,
  out bookmarks text, out count integer, out last_id bigint, out has_more boolean
)
-- Planned once: the rendering is a long expression, and its plan is the same for all values.
language plpgsql stable set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  v_rendered integer;
begin
  perform from bookmarks where user_id = p_user_id and id > p_after and id <= p_last order by id limit 1;
  if not found then
    bookmarks := '';
    count := 0;
    has_more := false;
    return;
  end if;
  select coalesce(string_agg(rendered, ','), ''), count(*), count(rendered), max(id)
  into bookmarks, count, v_rendered, last_id
  from (
    select id,
      case
        when bookmark_bytes(row(b.*)::bookmarks) <= p_bytes / p_limit
        then render_bookmark(row(b.*)::bookmarks)
      end as rendered
    from bookmarks b
    where user_id = p_user_id and id > p_after and id <= p_last
    order by id
    limit p_limit
  ) page;
  if v_rendered < count or octet_length(bookmarks) > p_bytes then
    select page.bookmarks, page.count, page.last_id into bookmarks, count, last_id
    from read_large_page(p_user_id, p_after, last_id, p_bytes) page;
  elsif count < p_limit then
    has_more := false;
    return;
  end if;
  -- `exists` would drop the order, and the planner could then scan the table from its beginning, through the rows of
  -- other users.
  has_more := (
    select id from bookmarks where user_id = p_user_id and id > last_id and id <= p_last order by id limit 1
  ) is not null;
end
$$;
