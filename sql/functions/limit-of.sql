-- Returns a limit by its name. Functions name a limit that several of them share, or that the service has as well.
--
-- The result depends only on the name, so Postgres calls this function only when it plans a statement.
create or replace function limit_of(p_name text) returns bigint
language sql immutable as $$
  select case p_name
    -- the bytes of a page of bookmarks
    when 'page_bytes' then 1048576
    -- the characters of a tag's name
    when 'tag_name' then 255
    -- the bookmarks in the trash of a premium account
    when 'premium_trash' then 100000
    -- the bookmarks in a block of search texts; about as many fill a block
    when 'block_bookmarks' then 64
    -- the bytes of the responses that are kept for a user's idempotency keys; the unread errors of a user's imports
    -- without a key may take as many bytes again
    when 'kept_bytes' then 16777216
    -- the bytes that must be left before a response is kept under a new key; an entry of an import may happen to be as
    -- long, but is unrelated
    when 'response_room' then 524288
    -- the ids that are taken in a tenth of a second, on average
    when 'ids_per_tick' then 200000
  end
$$;
