-- Whether an epoch belongs to any node. Rows that were moved to this node belong to the history of the node that gave
-- the cursor, which is known while that history lasts. Volatile, so that it sees an epoch that this statement began.
create or replace function knows_epoch(p_epoch bigint) returns boolean
language plpgsql volatile as $$
begin
  return exists (select from epoch where number = p_epoch);
end
$$;
