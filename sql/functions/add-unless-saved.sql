-- Adds a bookmark as `add_bookmark` does, if the user has no bookmark of the same url. Otherwise it adds nothing and
-- checks no cap. It then returns the newest bookmark of this url, and `existed` is true. With `p_is_error`, it returns
-- the outcome `bookmark_exists` instead.
create or replace function add_unless_saved(
  p_user_id bigint, p_token_hash bytea, p_bookmark jsonb, p_tag_names text[], p_tag_keys text[],
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  p_is_error boolean,
  out outcome text, out bookmark text, out existed boolean
)
language plpgsql as $$
declare
  v_saved text;
begin
  existed := false;
  select begun.outcome, begun.response into outcome, bookmark
  from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
  -- Return if the write is refused, or if the request's idempotency key already has a response.
  if outcome is not null or bookmark is not null then
    return;
  end if;

  select render_bookmark(row(b.*)::bookmarks) into v_saved
  from bookmarks b
  where b.user_id = p_user_id and b.url_key = (p_bookmark ->> 'url_key')::uuid
  -- `id + 0` is a column of the index `bookmarks_url_key`.
  order by b.id + 0 desc
  limit 1;
  if v_saved is null then
    select added.outcome, added.bookmark into outcome, bookmark
    from add_bookmark(
      p_user_id, p_token_hash, p_bookmark, p_tag_names, p_tag_keys, p_free_limit, p_tag_limit,
      p_idempotency_key, p_request_hash
    ) added;
  elsif p_is_error then
    outcome := 'bookmark_exists';
  else
    bookmark := v_saved;
    existed := true;
    perform keep_response(p_user_id, p_idempotency_key, p_request_hash, bookmark);
  end if;
end
$$;
