-- Returns the newest blocks of a user that have no Bloom filter yet. `texts` holds all texts of a block, separated by
-- line feeds. It is null if the texts take more than `p_bytes`.
create or replace function read_pending_filters(
  p_user_id bigint, p_limit integer, p_bytes integer, out last_id bigint, out edits integer, out texts text
) returns setof record
language plpgsql stable set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
    select pending.last_id, pending.edits,
      case when pg_column_size(block.texts) <= p_bytes then array_to_string(block.texts, e'\n') end
    from (
      select s.last_id, s.edits
      from search_signatures s
      where s.user_id = p_user_id and s.bits is null
      order by s.last_id desc
      limit p_limit
    ) pending
    -- `offset 0` keeps the planner from rewriting the join. So Postgres finds each block by its key.
    cross join lateral (
      select b.texts from search_blocks b where b.user_id = p_user_id and b.last_id = pending.last_id offset 0
    ) block;
end
$$;
