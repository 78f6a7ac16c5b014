-- works-with: 11
-- Two indexes now end with `id + 0` instead of `id`. They give the order of bookmarks with the same url, or with the
-- same time. With the plain id, Postgres also used them to look up bookmarks by their ids, and then read all index
-- entries of the user (docs/decisions/0093-plans-that-stay-good.md).

drop index bookmarks_url_key;
create index bookmarks_url_key on bookmarks (user_id, url_key, (id + 0));

drop index bookmarks_created;
create index bookmarks_created on bookmarks (user_id, created_at, (id + 0));
