-- The next id of a sequence, not below `time_floor`. Whoever draws ids under the lock of an account draws one by this
-- function first; those that follow in the same transaction may come from the sequence itself.
create or replace function draw_id(p_sequence regclass) returns bigint
language plpgsql volatile as $$
declare
  v_id bigint := nextval(p_sequence);
begin
  if v_id >= time_floor() then
    return v_id;
  end if;
  perform raise_sequence(p_sequence);
  return nextval(p_sequence);
end
$$;
