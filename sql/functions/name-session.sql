-- Records the program that opened a session. The statement that opens the session calls this function.
create or replace function name_session(p_user_id bigint, p_token_hash bytea, p_client text) returns void
language plpgsql as $$
begin
  update tokens set client = p_client where user_id = p_user_id and token_hash = p_token_hash;
end
$$;
