-- Returns the bookmarks with these ids, in the order of the given array, as JSON texts separated by commas. The texts
-- have at most `p_bytes` bytes in total, but there is at least one text unless the array is empty. `count` is the number
-- of the returned bookmarks. All bookmarks must exist, so the caller must have read the ids in the same snapshot.
--
-- read-page.sql explains the loop. The query looks up each bookmark in a subquery, because the planner could turn a join
-- into a scan of all bookmarks of the user.
create or replace function render_bookmarks(
  p_user_id bigint, p_ids bigint[], p_bytes integer, out bookmarks text, out count integer
)
language plpgsql stable as $$
declare
  v_text text;
  v_texts text[] := '{}';
  v_bytes bigint := 0;
begin
  count := 0;
  for v_text in
    select (
      select render_bookmark(row(b.*)::bookmarks) from bookmarks b where b.user_id = p_user_id and b.id = requested.id
    )
    -- `unnest` returns the ids in the order of the array.
    from unnest(p_ids) as requested (id)
  loop
    v_bytes := v_bytes + octet_length(v_text);
    exit when count > 0 and v_bytes > p_bytes;
    v_texts := v_texts || v_text;
    count := count + 1;
  end loop;
  bookmarks := array_to_string(v_texts, ',');
end
$$;
