-- What a query finds in those shards of a table that lie on this node of a sharded database, as JSON. `%s` stands for the shard.
create or replace function rows_of_node(p_table text, p_query text) returns setof jsonb
language plpgsql as $$
declare
  v_shard text;
begin
  for v_shard in execute
    'select shard_name(logicalrelid, shardid)
    from pg_dist_shard
    join pg_dist_placement using (shardid)
    where logicalrelid = $1::regclass and groupid = (select groupid from pg_dist_local_group)'
    using p_table
  loop
    return query execute format('select to_jsonb(found) from (' || p_query || ') found', v_shard);
  end loop;
end
$$;
