-- Makes a sequence on this node of a sharded database. It counts in steps of 256, and all its ids have the remainder of
-- the node's group. No other node has or had this remainder (docs/scaling.md). So no two nodes give the same id. Ids
-- stay below 2^53 wherever a user's rows are moved.
create or replace function make_sequence(p_sequence text) returns regclass
-- The service's role may draw from sequences, but not create them.
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
