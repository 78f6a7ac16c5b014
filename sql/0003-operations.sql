-- The operations that write bookmarks and tags: one call, one transaction, one round trip each.
--
-- Every function first locks the user's `accounts` row, then checks that the caller's token is valid, still after the
-- wait for the lock, and only then reads what it decides on: each statement of a function sees what committed before
-- that statement began, so also all that the writer before it did under the lock. An id is drawn under the lock, hence
-- one user's ids become visible in their order. What the client has to be told comes back as `outcome`; null is success.

create function token_is_valid(p_user_id bigint, p_token_hash bytea) returns boolean
language sql stable as $$
  select exists (
    select from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now()
  )
$$;

-- A time as it travels: UTC, ISO 8601 with milliseconds and Z. The microsecond keeps to_json from dropping trailing
-- zeros of the fraction; what is finer than a millisecond is cut first, or 0.129999 would become 0.13. A fifth cheaper
-- than to_char over a page.
create function render_time(p_time timestamptz) returns text
language sql stable as $$
  select substr(
    to_json(date_trunc('milliseconds', p_time at time zone 'UTC') + interval '1 microsecond')::text, 2, 23
  ) || 'Z'
$$;

-- A bookmark as it travels; its times are whole milliseconds. One expression of its arguments, so that the planner puts
-- it in place of the call.
-- Whole answers are built here and passed through. CPU of Postgres / of Node for a page of 50, of 100, of 500 (ms):
--   this, over the stored tags                    0.26 / 0.08     0.47 / 0.10     1.97 / 0.51
--   json_agg(row_to_json)                         0.31 / 0.12     0.66 / 0.10     2.93 / 0.46
--   rows shaped in Node, tags spliced in          0.12 / 0.23     0.22 / 0.26     0.96 / 1.21
-- In sum the first and the last are even; one row per answer keeps the driver and the retries simple.
create function render_bookmark(
  p_id bigint, p_url text, p_title text, p_comment text, p_tags text, p_created_at timestamptz, p_updated_at timestamptz
) returns text
language sql stable as $$
  select '{"id":' || p_id
    || ',"url":' || to_json(p_url)
    || ',"title":' || to_json(p_title)
    || ',"comment":' || to_json(p_comment)
    || ',"tags":' || p_tags
    || ',"created_at":' || left(to_json(p_created_at at time zone 'UTC' + interval '1 microsecond')::text, 24)
    || 'Z","updated_at":' || left(to_json(p_updated_at at time zone 'UTC' + interval '1 microsecond')::text, 24) || 'Z"}'
$$;

create function render_tags(p_user_id bigint, p_tag_ids bigint[]) returns text
language sql stable as $$
  select coalesce(
    '[' || string_agg('{"id":' || id || ',"name":' || to_json(name) || '}', ',' order by name_key) || ']',
    '[]'
  )
  from tags
  where user_id = p_user_id and id = any (p_tag_ids)
$$;

-- The moment to stamp a write with: taken after the lock was waited for.
create function current_millisecond() returns timestamptz
language sql volatile as $$
  select date_trunc('milliseconds', clock_timestamp())
$$;

-- The ids of the named tags, missing ones made; null where that would pass the tag limit. Under the user's lock only.
create function ensure_tags(p_user_id bigint, p_names text[], p_keys text[], p_tag_limit integer) returns bigint[]
language plpgsql as $$
declare
  v_ids bigint[];
  v_missing integer;
begin
  select coalesce(array_agg(id), '{}') into v_ids from tags where user_id = p_user_id and name_key = any (p_keys);
  v_missing := cardinality(p_keys) - cardinality(v_ids);
  if v_missing = 0 then
    return v_ids;
  end if;

  update accounts set tag_count = tag_count + v_missing
  where user_id = p_user_id and tag_count + v_missing <= p_tag_limit;
  if not found then
    return null;
  end if;

  with made as (
    insert into tags (user_id, name, name_key)
    select p_user_id, wanted.name, wanted.key
    from unnest(p_names, p_keys) as wanted (name, key)
    where not exists (select from tags t where t.user_id = p_user_id and t.name_key = wanted.key)
    returning id
  )
  select v_ids || array_agg(id) into v_ids from made;
  return v_ids;
end
$$;

-- Answers to requests that came with an `Idempotency-Key`, kept for 24 hours: written with what they answer, in one
-- transaction, so that a repeat finds either both or neither.
create table idempotency_keys (
  user_id bigint,
  key text collate "C",
  -- SHA-256 of the path and the body
  request_hash bytea not null,
  -- JSON text
  answer text not null,
  created_at timestamptz not null default now(),
  constraint idempotency_keys_pkey primary key (user_id, key),
  constraint idempotency_keys_account foreign key (user_id) references accounts (user_id) on delete cascade
);

create index idempotency_keys_created_at on idempotency_keys (created_at);

-- The answer that a key has had, or the outcome `key_reused` for another request; both null for a key that is new.
-- Its callers hold the account's lock: a repeat that runs at the same time waits for it, and then finds the answer.
create function find_answer(
  p_user_id bigint, p_key text, p_request_hash bytea, out outcome text, out answer text
)
language plpgsql as $$
begin
  if p_key is null then
    return;
  end if;
  select
    case when k.request_hash <> p_request_hash then 'key_reused' end,
    case when k.request_hash = p_request_hash then k.answer end
  into outcome, answer
  from idempotency_keys k
  where k.user_id = p_user_id and k.key = p_key and k.created_at > now() - interval '24 hours';
end
$$;

create function keep_answer(p_user_id bigint, p_key text, p_request_hash bytea, p_answer text) returns void
language plpgsql as $$
begin
  if p_key is null then
    return;
  end if;
  insert into idempotency_keys (user_id, key, request_hash, answer)
  values (p_user_id, p_key, p_request_hash, p_answer)
  on conflict (user_id, key) do update
  set request_hash = excluded.request_hash, answer = excluded.answer, created_at = now();
end
$$;

create function add_bookmark(
  p_user_id bigint, p_token_hash bytea,
  p_url text, p_url_key uuid, p_title text, p_comment text, p_search_text text,
  p_tag_names text[], p_tag_keys text[],
  p_free_limit bigint, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out bookmark text
)
language plpgsql as $$
declare
  v_tag_ids bigint[] := '{}';
  v_new_ids bigint[];
  v_tags text := '[]';
begin
  if p_idempotency_key is not null then
    perform from accounts where user_id = p_user_id for no key update;
    if not token_is_valid(p_user_id, p_token_hash) then
      outcome := 'token';
      return;
    end if;
    select k.outcome, k.answer into outcome, bookmark from find_answer(p_user_id, p_idempotency_key, p_request_hash) k;
    if outcome is not null or bookmark is not null then
      return;
    end if;
  end if;

  update accounts set bookmark_count = bookmark_count + 1
  where user_id = p_user_id and (is_premium or bookmark_count < p_free_limit) and exists (
    select from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now()
  );
  if not found then
    outcome := case when token_is_valid(p_user_id, p_token_hash) then 'bookmark_limit' else 'token' end;
    return;
  end if;

  if cardinality(p_tag_keys) > 0 then
    with counted as (
      -- One upsert: an update of what is there is planned anew at every call and doubles the time of an add.
      -- Of a row that was inserted, not updated, xmax is 0.
      insert into tags as t (user_id, name, name_key, bookmark_count)
      select p_user_id, wanted.name, wanted.key, 1
      from unnest(p_tag_names, p_tag_keys) as wanted (name, key)
      on conflict (user_id, name_key) do update set bookmark_count = t.bookmark_count + 1
      returning t.id, t.name, t.name_key, t.xmax = 0 as is_new
    )
    select
      array_agg(id),
      '[' || string_agg('{"id":' || id || ',"name":' || to_json(name) || '}', ',' order by name_key) || ']',
      array_agg(id) filter (where is_new)
    into v_tag_ids, v_tags, v_new_ids
    from counted;
    if v_new_ids is not null then
      update accounts set tag_count = tag_count + cardinality(v_new_ids)
      where user_id = p_user_id and tag_count + cardinality(v_new_ids) <= p_tag_limit;
      if not found then
        delete from tags where user_id = p_user_id and id = any (v_new_ids);
        update tags set bookmark_count = bookmark_count - 1 where user_id = p_user_id and id = any (v_tag_ids);
        update accounts set bookmark_count = bookmark_count - 1 where user_id = p_user_id;
        outcome := 'tag_limit';
        return;
      end if;
    end if;
  end if;

  insert into bookmarks (
    user_id, created_at, updated_at, url_key, url, title, comment, tag_ids, tags, search_text
  )
  select p_user_id, now_ms, now_ms, p_url_key, p_url, p_title, p_comment, v_tag_ids, v_tags, p_search_text
  from (select date_trunc('milliseconds', clock_timestamp()) as now_ms) moment
  -- The lock may have been waited for, and the token revoked meanwhile.
  where exists (
    select from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now()
  )
  returning render_bookmark(id, url, title, comment, tags, created_at, updated_at) into bookmark;
  if not found then
    update tags set bookmark_count = bookmark_count - 1 where user_id = p_user_id and id = any (v_tag_ids);
    delete from tags where user_id = p_user_id and id = any (v_new_ids);
    update accounts
    set bookmark_count = bookmark_count - 1, tag_count = tag_count - coalesce(cardinality(v_new_ids), 0)
    where user_id = p_user_id;
    outcome := 'token';
    return;
  end if;
  if p_idempotency_key is not null then
    perform keep_answer(p_user_id, p_idempotency_key, p_request_hash, bookmark);
  end if;
end
$$;

-- Changes the fields that are not null; with none it changes nothing, `updated_at` included. `p_title_text` and
-- `p_comment_text` are the folded lines of the search text.
create function edit_bookmark(
  p_user_id bigint, p_token_hash bytea, p_id bigint,
  p_title text, p_title_text text, p_comment text, p_comment_text text,
  p_tag_names text[], p_tag_keys text[], p_tag_limit integer,
  out outcome text, out bookmark text
)
language plpgsql as $$
declare
  v_old_ids bigint[];
  v_tag_ids bigint[];
  v_tags text;
begin
  if p_tag_keys is not null then
    perform from accounts where user_id = p_user_id for no key update;
  end if;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;

  if p_tag_keys is not null then
    select tag_ids into v_old_ids from bookmarks where user_id = p_user_id and id = p_id;
    if not found then
      outcome := 'bookmark_missing';
      return;
    end if;
    v_tag_ids := ensure_tags(p_user_id, p_tag_names, p_tag_keys, p_tag_limit);
    if v_tag_ids is null then
      outcome := 'tag_limit';
      return;
    end if;
    update tags
    set bookmark_count = bookmark_count + case when id = any (v_tag_ids) then 1 else -1 end
    where user_id = p_user_id and id = any (v_old_ids || v_tag_ids)
      and (id = any (v_old_ids)) <> (id = any (v_tag_ids));
    v_tags := render_tags(p_user_id, v_tag_ids);
  end if;

  if p_title is not null or p_comment is not null or p_tag_keys is not null then
    update bookmarks
    set title = coalesce(p_title, title),
      comment = coalesce(p_comment, comment),
      tag_ids = coalesce(v_tag_ids, tag_ids),
      tags = coalesce(v_tags, tags),
      search_text = split_part(search_text, e'\n', 1)
        || e'\n' || coalesce(p_title_text, split_part(search_text, e'\n', 2))
        || e'\n' || coalesce(p_comment_text, split_part(search_text, e'\n', 3)),
      updated_at = current_millisecond()
    where user_id = p_user_id and id = p_id;
  end if;

  select '{"id":' || b.id
    || ',"url":' || to_json(b.url)
    || ',"title":' || to_json(b.title)
    || ',"comment":' || to_json(b.comment)
    || ',"tags":' || b.tags
    || ',"updated_at":"' || render_time(b.updated_at) || '"}'
  into bookmark
  from bookmarks b
  where b.user_id = p_user_id and b.id = p_id;
  if not found then
    outcome := 'bookmark_missing';
  end if;
end
$$;

create function delete_bookmark(p_user_id bigint, p_token_hash bytea, p_id bigint, out outcome text)
language plpgsql as $$
declare
  v_tag_ids bigint[];
begin
  perform from accounts where user_id = p_user_id for no key update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from bookmarks where user_id = p_user_id and id = p_id returning tag_ids into v_tag_ids;
  if not found then
    outcome := 'bookmark_missing';
    return;
  end if;
  update accounts set bookmark_count = bookmark_count - 1 where user_id = p_user_id;
  update tags set bookmark_count = bookmark_count - 1 where user_id = p_user_id and id = any (v_tag_ids);
end
$$;

create function create_tag(
  p_user_id bigint, p_token_hash bytea, p_name text, p_key text, p_tag_limit integer,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out tag text
)
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  select k.outcome, k.answer into outcome, tag from find_answer(p_user_id, p_idempotency_key, p_request_hash) k;
  if outcome is not null or tag is not null then
    return;
  end if;

  if exists (select from tags where user_id = p_user_id and name_key = p_key) then
    outcome := 'tag_exists';
    return;
  end if;
  update accounts set tag_count = tag_count + 1 where user_id = p_user_id and tag_count < p_tag_limit;
  if not found then
    outcome := 'tag_limit';
    return;
  end if;
  insert into tags (user_id, name, name_key) values (p_user_id, p_name, p_key)
  returning '{"id":' || id || ',"name":' || to_json(name) || ',"created_at":"' || render_time(created_at) || '"}'
  into tag;
  perform keep_answer(p_user_id, p_idempotency_key, p_request_hash, tag);
end
$$;

create function rename_tag(
  p_user_id bigint, p_token_hash bytea, p_id bigint, p_name text, p_key text, out outcome text
)
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  if not exists (select from tags where user_id = p_user_id and id = p_id) then
    outcome := 'tag_missing';
    return;
  end if;
  if exists (select from tags where user_id = p_user_id and name_key = p_key and id <> p_id) then
    outcome := 'tag_exists';
    return;
  end if;
  update tags set name = p_name, name_key = p_key where user_id = p_user_id and id = p_id;
  update bookmarks set tags = render_tags(p_user_id, tag_ids)
  where user_id = p_user_id and tag_ids @> array[p_id];
end
$$;

create function delete_tag(p_user_id bigint, p_token_hash bytea, p_id bigint, out outcome text)
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from tags where user_id = p_user_id and id = p_id;
  if not found then
    outcome := 'tag_missing';
    return;
  end if;
  update accounts set tag_count = tag_count - 1 where user_id = p_user_id;
  update bookmarks
  set tag_ids = array_remove(tag_ids, p_id), tags = render_tags(p_user_id, array_remove(tag_ids, p_id))
  where user_id = p_user_id and tag_ids @> array[p_id];
end
$$;
