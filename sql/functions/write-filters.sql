-- Writes the Bloom filters of blocks of search texts, and returns how many it wrote. Skips a block if its texts were
-- edited since the caller read them. Also skips locked blocks, which get their filters later.
create or replace function write_filters(
  p_user_id bigint, p_last_ids bigint[], p_edits integer[], p_filters text[]
) returns bigint
-- Each statement finds its rows by a complete key, so one plan fits all calls.
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_count bigint := 0;
begin
  for n in 1..cardinality(p_last_ids) loop
    perform from search_signatures
    where user_id = p_user_id and last_id = p_last_ids[n] and edits = p_edits[n] and bits is null
    for update skip locked;
    continue when not found;
    update search_signatures set bits = decode(p_filters[n], 'base64')
    where user_id = p_user_id and last_id = p_last_ids[n];
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;
