-- Begins a new epoch on every node, so that every reader of changes starts over. Returns the highest new epoch. An
-- operator runs it after restoring a copy that `current_epoch` cannot distinguish from the original, for example a
-- snapshot of a volume.
create or replace function begin_epoch() returns bigint
language plpgsql as $$
declare
  v_floor bigint := min_id_now();
begin
  perform current_epoch();
  update epoch set number = greatest(number + 200000, v_floor + node);
  return (select max(number) from epoch);
end
$$;
