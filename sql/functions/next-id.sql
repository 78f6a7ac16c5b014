-- Returns the next id of a sequence. The id is above `p_above` (the account's `id_floor`) and at least `min_id_now()`.
--
-- A function that holds the lock on an account's row must take its first id with this function. The only exception is
-- `add_bookmark`, which checks the same conditions itself. After the first id, a function may take ids directly from
-- the sequence. In a sharded database, each node has its own sequences. A sequence is created when it is first needed.
create or replace function next_id(p_sequence text, p_above bigint default 0) returns bigint
language plpgsql volatile as $$
declare
  v_sequence regclass := to_regclass(p_sequence);
  v_id bigint;
begin
  if v_sequence is null then
    v_sequence := make_sequence(p_sequence);
  end if;
  v_id := nextval(v_sequence);
  if v_id >= min_id_now() and v_id > p_above then
    return v_id;
  end if;
  perform raise_sequence(v_sequence, p_above);
  return nextval(v_sequence);
end
$$;
