-- The next id of a sequence: above `p_above`, the account's `id_floor`, and not below `time_floor`. Whoever draws
-- ids under the lock of an account draws one by this function first, or tries by itself what it tries (`add_bookmark`); those
-- that follow in the same transaction may come from the sequence itself. A node of a sharded database has sequences of its
-- own: it makes one when it first draws from it.
create or replace function draw_id(p_sequence text, p_above bigint default 0) returns bigint
language plpgsql volatile as $$
declare
  v_sequence regclass := to_regclass(p_sequence);
  v_id bigint;
begin
  if v_sequence is null then
    v_sequence := make_sequence(p_sequence);
  end if;
  v_id := nextval(v_sequence);
  if v_id >= time_floor() and v_id > p_above then
    return v_id;
  end if;
  perform raise_sequence(v_sequence, p_above);
  return nextval(v_sequence);
end
$$;
