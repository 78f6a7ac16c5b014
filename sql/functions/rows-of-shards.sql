-- Runs a query on a table and returns the rows as JSON, for sweeps over all users. In a sharded database, each node
-- runs the query on its own shards (`rows_of_node`). Rows on nodes that cannot be reached are left out. `%s` in the
-- query stands for the name of the shard or the table.
create or replace function rows_of_shards(p_table text, p_query text) returns setof jsonb
language plpgsql as $$
declare
  v_node_rows jsonb;
begin
  if to_regclass('pg_catalog.pg_dist_shard') is null then
    return query select each_row from rows_of_node(p_table, p_query) each_row;
    return;
  end if;
  -- `run_command_on_all_nodes` opens one connection for each node. `run_command_on_shards` would open one for each
  -- shard, all of them at the same time.
  for v_node_rows in execute 'select result::jsonb from run_command_on_all_nodes($1) where success'
    using format('select coalesce(jsonb_agg(query_row), ''[]'') from rows_of_node(%L, %L) query_row', p_table, p_query)
  loop
    return query select jsonb_array_elements(v_node_rows);
  end loop;
end
$$;
