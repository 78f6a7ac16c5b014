-- Makes a sequence of this node, where the database is sharded. All nodes count in steps of 256, each with the remainder of its
-- group, which no other node has or had (docs/scaling.md): so their ids are never the same, and wherever a user's rows lie, and
-- are moved to, all ids lie below 2^53.
create or replace function make_sequence(p_sequence text) returns regclass
-- The role that serves may draw from sequences, and not make them.
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
