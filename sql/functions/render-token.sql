-- Renders a session or an API token as its owner sees it, but only the fields that both kinds have in common.
create or replace function render_token(p_token tokens) returns jsonb
language sql stable as $$
  select jsonb_build_object(
    'id', p_token.id,
    'kind', p_token.kind,
    'scope', p_token.scope,
    'created_at', render_time(p_token.created_at),
    'expires_at', case when isfinite(p_token.expires_at) then render_time(p_token.expires_at) end,
    'last_used_at', render_time(p_token.last_used_at),
    'last_four', p_token.last_four
  )
$$;
