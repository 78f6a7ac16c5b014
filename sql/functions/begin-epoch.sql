-- Begins a new epoch: for an operator who put back a copy that the database cannot tell from itself, like a volume's
-- snapshot. Every reader of changes begins anew.
create or replace function begin_epoch() returns bigint
language plpgsql as $$
declare
  v_epoch bigint;
begin
  perform current_epoch();
  update epoch set number = greatest(number + 1, time_floor()) where only_row returning number into v_epoch;
  return v_epoch;
end
$$;
