-- Raises a sequence above `min_id_now()` and `p_above`, unless it is above them already. `min_id_now()` rises ten times
-- a second. So all connections together raise a sequence at most ten times a second. If a sequence counts in steps, its
-- values keep their remainder, which no other node of a sharded database uses.
--
-- Only one connection at a time may call `setval`. Otherwise a connection could set the sequence back after another one
-- has raised it, and an id would be given twice. So the function takes an advisory lock of the connection, and releases
-- the lock itself after microseconds. A lock of the transaction would be held until the transaction ends, for example
-- until the end of an import.
create or replace function raise_sequence(p_sequence regclass, p_above bigint default 0) returns void
-- `security definer` is needed, because the service's role may take ids from sequences, but not set them.
language plpgsql volatile security definer set search_path from current as $$
declare
  v_new_value bigint;
begin
  perform pg_advisory_lock('pg_class'::regclass::integer, p_sequence::oid::integer);
  begin
    -- A value that has the remainder of the sequence. It exceeds the greater of `min_id_now()` and `p_above` by less
    -- than two steps.
    select (greatest(min_id_now(), p_above) / seqincrement + 1) * seqincrement + seqstart % seqincrement
    into v_new_value
    from pg_sequence
    where seqrelid = p_sequence;
    if coalesce(pg_sequence_last_value(p_sequence), 0) < v_new_value then
      perform setval(p_sequence, v_new_value);
    end if;
  -- `others` does not include the cancellation of a statement.
  exception when query_canceled or others then
    perform pg_advisory_unlock('pg_class'::regclass::integer, p_sequence::oid::integer);
    raise;
  end;
  perform pg_advisory_unlock('pg_class'::regclass::integer, p_sequence::oid::integer);
end
$$;
