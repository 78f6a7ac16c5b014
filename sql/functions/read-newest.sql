-- The newest bookmarks but so many, falling, as JSON texts with commas between. What is skipped is read from the index
-- alone, and neither fetched nor rendered. It must not sort, for the reason that read-page.sql gives.
create or replace function read_newest(p_user_id bigint, p_offset bigint, p_limit integer) returns text
language plpgsql stable set enable_sort = off as $$
declare
  v_first bigint := 9223372036854775807;
begin
  if p_offset > 0 then
    select id into v_first from bookmarks where user_id = p_user_id order by id desc limit 1 offset p_offset;
  end if;
  return (
    select coalesce(string_agg(rendered, ','), '')
    from (
      select render_bookmark(b) as rendered
      from bookmarks b
      where user_id = p_user_id and id <= v_first
      order by id desc
      limit p_limit
    ) page
  );
end
$$;
