-- The bytes of all imports that are staged on this node. Of a sharded database only the shards that lie here are read: the cap
-- is one of this node's disk, and imports go on here while another node is down.
create or replace function staged_bytes() returns bigint
language plpgsql stable as $$
declare
  v_shard text;
  v_bytes bigint;
  v_sum bigint := 0;
begin
  if to_regclass('pg_catalog.pg_dist_shard') is null then
    return (select coalesce(sum(bytes), 0) from imports where state in ('receiving', 'queued'));
  end if;
  for v_shard in execute
    'select shard_name(s.logicalrelid, s.shardid)
    from pg_dist_shard s
    join pg_dist_placement p on p.shardid = s.shardid
    where s.logicalrelid = ''imports''::regclass and p.groupid = local_node()'
  loop
    execute format($sum$select coalesce(sum(bytes), 0) from %s where state in ('receiving', 'queued')$sum$, v_shard)
    into v_bytes;
    v_sum := v_sum + v_bytes;
  end loop;
  return v_sum;
end
$$;
