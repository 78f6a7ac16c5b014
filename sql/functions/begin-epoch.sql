-- Begins a new epoch on every node, so that every reader of changes starts over. Returns the highest new epoch. An
-- operator calls this function after restoring a copy that `current_epoch` cannot distinguish from the original, for
-- example a snapshot of a volume.
create or replace function begin_epoch() returns bigint
language plpgsql as $$
declare
  v_min_id bigint := min_id_now();
begin
  -- If this node has no row in `epoch` yet, this call inserts one.
  perform current_epoch();
  -- Both arguments of `greatest` are a multiple of `ids_per_tick` plus the number of the node. So two nodes never get the same
  -- epoch.
  update epoch set number = greatest(number + limit_of('ids_per_tick'), v_min_id + node);
  return (select max(number) from epoch);
end
$$;
