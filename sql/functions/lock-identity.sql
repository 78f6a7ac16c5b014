-- Every writer that links an identity takes this lock first. If two link the same one, the second finds the result of
-- the first.
create or replace function lock_identity(p_issuer text, p_subject text) returns void
language sql as $$
  select pg_advisory_xact_lock(hashtextextended(p_issuer || ' ' || p_subject, 0))
$$;
