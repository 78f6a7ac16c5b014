-- Opens a session for a person who signed in at a provider. The issuer and the subject determine the user. If they
-- belong to no user yet, calls `first_sign_in`. `p_email_key` is null if the address must not be used, for example
-- because it is not verified. If `p_expected_user_id` is given, only this user can sign in, and nothing is created or
-- linked.
create or replace function sign_in_by_provider(
  p_issuer text, p_subject text, p_email text, p_email_key text, p_is_trusted boolean, p_is_open boolean,
  p_expected_user_id bigint,
  p_token_hash bytea, p_last_four text, p_authenticated_at timestamptz, p_session_days integer,
  out outcome text, out id bigint
)
language plpgsql as $$
begin
  select i.user_id into id from identities i where i.issuer = p_issuer and i.subject = p_subject;
  if not found and p_expected_user_id is null then
    select f.outcome, f.id into outcome, id
    from first_sign_in(p_issuer, p_subject, p_email, p_email_key, p_is_trusted, p_is_open) f;
    if outcome is not null then
      return;
    end if;
  end if;
  if id <> p_expected_user_id or id is null then
    outcome := 'other-person';
    return;
  end if;
  select s.outcome into outcome
  from open_session(id, p_token_hash, p_last_four, null, p_authenticated_at, p_session_days) s;
end
$$;
