-- Returns the number of the Citus group of the node that runs this function; 0 if the database is not sharded.
create or replace function local_node() returns integer
language plpgsql stable as $$
declare
  v_node integer := 0;
begin
  if to_regclass('pg_catalog.pg_dist_local_group') is not null then
    execute 'select groupid from pg_catalog.pg_dist_local_group' into v_node;
  end if;
  return v_node;
end
$$;
