-- Returns the id of the bookmark at this offset, newest first; null past the end. For a large offset, the function
-- counts the ids in the rows of `search_blocks`. It begins with the newest or the oldest block, whichever is nearer to
-- the offset. So it does not read all bookmarks before the offset.
create or replace function newest_at(p_user_id bigint, p_offset bigint) returns bigint
-- These settings make Postgres read in the order of the key. read-page.sql says why.
language plpgsql stable set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_total bigint := (select bookmark_count from accounts where user_id = p_user_id);
  v_packed_to bigint;
  -- The offset of the wanted bookmark if only the bookmarks in blocks are counted. Null if `p_offset` is small or past
  -- the end. Negative if the wanted bookmark is in no block.
  v_offset_in_blocks bigint;
  v_id bigint;
begin
  if p_offset >= 1000 and p_offset < v_total then
    select last_id into v_packed_to from search_blocks where user_id = p_user_id order by last_id desc limit 1;
    -- The newest bookmarks are in no block yet, so they are counted separately.
    v_offset_in_blocks := p_offset - (
      select count(*) from bookmarks where user_id = p_user_id and id > v_packed_to
    );
  end if;
  if v_offset_in_blocks >= 0 and p_offset > v_total / 2 then
    -- The offset is nearer to the oldest bookmark. `v_total - p_offset` is the position of the wanted bookmark, counted
    -- from the oldest bookmark, which has position 1. `counted` is the number of bookmarks in the block and in all
    -- older blocks.
    select ids[counted - (v_total - p_offset) + 1] into v_id
    from (
      select ids, sum(cardinality(ids)) over (order by last_id rows unbounded preceding) as counted
      from search_blocks
      where user_id = p_user_id
    ) oldest_first
    where counted >= v_total - p_offset
    limit 1;
  elsif v_offset_in_blocks >= 0 then
    -- The offset is nearer to the newest bookmark. `counted` is the number of bookmarks in the block and in all newer
    -- blocks.
    select ids[v_offset_in_blocks + 1 - (counted - cardinality(ids))] into v_id
    from (
      select ids, sum(cardinality(ids)) over (order by last_id desc rows unbounded preceding) as counted
      from search_blocks
      where user_id = p_user_id
    ) newest_first
    where counted > v_offset_in_blocks
    limit 1;
  else
    select id into v_id from bookmarks where user_id = p_user_id order by id desc limit 1 offset p_offset;
  end if;
  return v_id;
end
$$;
