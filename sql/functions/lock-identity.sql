-- Locks an identity until the end of the transaction. Every function that links an identity takes this lock first. So
-- if two transactions link the same identity, the second one waits and then finds the link.
create or replace function lock_identity(p_issuer text, p_subject text) returns void
language sql as $$
  select pg_advisory_xact_lock(hashtextextended(p_issuer || ' ' || p_subject, 0))
$$;
