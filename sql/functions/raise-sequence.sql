-- Raises a sequence to `min_id_now` and to `p_above`, by time ten times a second at most over all sessions. `setval` alone
-- could lower what another session has raised meanwhile, and an id would be given twice: so one session at a time, for
-- microseconds. The lock is the session's, as one of the transaction would be held as long as an import takes. A sequence
-- that counts in steps keeps its remainder: no other node of a sharded database gives ids with the same one.
create or replace function raise_sequence(p_sequence regclass, p_above bigint default 0) returns void
-- The role that serves may draw from sequences, and not set them.
language plpgsql volatile security definer set search_path from current as $$
declare
  v_floor bigint;
begin
  perform pg_advisory_lock('pg_class'::regclass::integer, p_sequence::oid::integer);
  begin
    select (greatest(min_id_now(), p_above) / seqincrement + 1) * seqincrement + seqstart % seqincrement into v_floor
    from pg_sequence
    where seqrelid = p_sequence;
    if coalesce(pg_sequence_last_value(p_sequence), 0) < v_floor then
      perform setval(p_sequence, v_floor);
    end if;
  exception when query_canceled or others then
    perform pg_advisory_unlock('pg_class'::regclass::integer, p_sequence::oid::integer);
    raise;
  end;
  perform pg_advisory_unlock('pg_class'::regclass::integer, p_sequence::oid::integer);
end
$$;
