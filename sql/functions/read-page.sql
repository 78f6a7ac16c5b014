-- The bookmarks after one id and up to another, rising, as JSON texts with commas between: at most so many, and of some
-- `p_bytes` bytes in all, but one at least. `has_more` says whether others follow.
--
-- The planner guesses how many bookmarks a user has from statistics that are always older than the last import. Where it
-- guesses few it would gather all that follow, sort them and keep a page: 20,001 rows read for a page of 500, 750 ms for the
-- first 500 of 1,000,000. It must not sort here, so that it can only walk along the key.
--
-- Hardly any page comes near the bound. One whose bookmarks each have no more than their share of the bytes is read and
-- rendered in one go, which costs hardly more than without a bound; a sum over the rows before rendering would cost 11 to 35 %.
--
-- Most pages are those of polls that find nothing: they end after one probe of the key, in half the time.
create or replace function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer, p_bytes integer,
  out bookmarks text, out count integer, out last_id bigint, out has_more boolean
)
-- Planned once: what is rendered is a long expression, and its plan is the same for all values.
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
  -- `exists` would drop the order, and with it the key: a scan of the table that believes to find a row at once reads
  -- those of all users before this one's.
  has_more := (
    select id from bookmarks where user_id = p_user_id and id > last_id and id <= p_last order by id limit 1
  ) is not null;
end
$$;
