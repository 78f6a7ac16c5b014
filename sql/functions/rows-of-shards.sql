-- What a query finds in a table, as JSON, by `rows_of_node`. Of a sharded database each node runs it on its own shards, for sweeps
-- over all users: what lies on a node that cannot be reached is left out, and the others' rows are found all the same. `%s` stands
-- for the table.
create or replace function rows_of_shards(p_table text, p_query text) returns setof jsonb
language plpgsql as $$
declare
  v_found jsonb;
begin
  if to_regclass('pg_catalog.pg_dist_shard') is null then
    return query select each_row from rows_of_node(p_table, p_query) each_row;
    return;
  end if;
  -- One connection a node: `run_command_on_shards` makes one a shard, all at once.
  for v_found in execute 'select result::jsonb from run_command_on_all_nodes($1) where success'
    using format('select coalesce(jsonb_agg(found), ''[]'') from rows_of_node(%L, %L) found', p_table, p_query)
  loop
    return query select jsonb_array_elements(v_found);
  end loop;
end
$$;
