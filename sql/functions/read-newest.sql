-- The newest bookmarks after an offset, by descending id, as JSON texts with commas between. About `p_bytes` bytes in
-- total, but at least one bookmark. Skipped bookmarks are neither fetched nor rendered. It must not sort, and renders
-- small bookmarks in one pass, for the reasons in read-page.sql.
create or replace function read_newest(
  p_user_id bigint, p_offset bigint, p_limit integer, p_bytes integer,
  out bookmarks text, out count integer, out last_id bigint
)
-- Planned once: the rendering is a long expression, and its plan is the same for all values.
language plpgsql stable set enable_sort = off set plan_cache_mode = force_generic_plan as $$
declare
  v_first bigint := 9223372036854775807;
  v_ids bigint[];
  v_rendered integer;
begin
  if p_offset > 0 then
    v_first := newest_at(p_user_id, p_offset);
  end if;
  select coalesce(string_agg(rendered, ','), ''), coalesce(array_agg(id), '{}'), count(rendered)
  into bookmarks, v_ids, v_rendered
  from (
    select id,
      case
        when bookmark_bytes(row(b.*)::bookmarks) <= p_bytes / p_limit
        then render_bookmark(row(b.*)::bookmarks)
      end as rendered
    from bookmarks b
    where user_id = p_user_id and id <= v_first
    order by id desc
    limit p_limit
  ) page;
  count := cardinality(v_ids);
  if v_rendered < count or octet_length(bookmarks) > p_bytes then
    select page.bookmarks, page.count into bookmarks, count from render_bookmarks(p_user_id, v_ids, p_bytes) page;
  end if;
  last_id := v_ids[count];
end
$$;
