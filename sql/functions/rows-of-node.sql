-- Runs a query on each of a table's shards on this node, and returns the rows as JSON. If the database is not sharded,
-- runs the query on the table itself. `%s` in the query stands for the name of the shard or the table.
create or replace function rows_of_node(p_table text, p_query text) returns setof jsonb
language plpgsql as $$
declare
  v_shards text[] := array[p_table];
  v_shard text;
begin
  if to_regclass('pg_catalog.pg_dist_shard') is not null then
    execute
      'select coalesce(array_agg(shard_name(logicalrelid, shardid)), ''{}'')
      from pg_dist_shard
      join pg_dist_placement using (shardid)
      where logicalrelid = $1::regclass and groupid = (select groupid from pg_dist_local_group)'
    into v_shards
    using p_table;
  end if;
  foreach v_shard in array v_shards loop
    return query execute format('select to_jsonb(query_row) from (' || p_query || ') query_row', v_shard);
  end loop;
end
$$;
