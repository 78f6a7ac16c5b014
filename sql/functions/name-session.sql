-- Records the program that opened a session. It is called in the statement that opens the session.
create or replace function name_session(p_user_id bigint, p_token_hash bytea, p_client text) returns void
language plpgsql as $$
begin
  update tokens set client = p_client where user_id = p_user_id and token_hash = p_token_hash;
end
$$;
