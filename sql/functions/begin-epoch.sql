-- Begins a new epoch of every node: for an operator who put back a copy that the database cannot tell from itself, like a
-- volume's snapshot. Every reader of changes begins anew.
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
