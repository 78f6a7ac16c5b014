-- Creates a sequence on this node of a sharded database. The sequence counts in steps of 256 and starts at a number
-- that depends on the node's group. So all its ids have the same remainder modulo 256. No other node has or had this
-- remainder (docs/scaling.md), so no two nodes give the same id. Sequences of Citus itself are not used, because their
-- ids would exceed 2^53.
create or replace function make_sequence(p_sequence text) returns regclass
-- `security definer` is needed, because the service's role may take ids from sequences, but not create them.
language plpgsql volatile security definer set search_path from current as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(p_sequence, 0));
  execute format(
    'create sequence if not exists %I as bigint increment 256 start %s maxvalue 9007199254740991 cache 1',
    p_sequence, 256 + local_node() % 256
  );
  execute format('grant usage on sequence %I to public', p_sequence);
  return to_regclass(p_sequence);
end
$$;
