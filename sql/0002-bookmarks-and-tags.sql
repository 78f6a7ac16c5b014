-- works-with: 2
-- Bookmarks and tags.

-- Trusted since PostgreSQL 13: the owner of the database may create it.
create extension if not exists btree_gin;

-- One sequence for all users, never cached: a session that kept ids back would give them out of order.
create sequence bookmarks_id_seq as bigint maxvalue 9007199254740991 cache 1;
create sequence tags_id_seq as bigint maxvalue 9007199254740991;

create table tags (
  user_id bigint,
  id bigint default nextval('tags_id_seq'),
  name text collate "C" not null,
  -- the name folded by the service: unique whatever its case, and the order in which tags are listed
  name_key text collate "C" not null,
  bookmark_count counter not null default 0,
  created_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  constraint tags_pkey primary key (user_id, id),
  constraint tags_name_unique unique (user_id, name_key),
  constraint tags_account foreign key (user_id) references accounts (user_id) on delete cascade
) with (fillfactor = 70);

alter table tags alter column user_id set statistics 0;

-- No foreign key to accounts: whoever writes a bookmark holds the lock on the account's row, and the key would cost 7 to
-- 10 % of an add and double the time of an import.
--
-- Tags of a bookmark are an array of tag ids, with counters on the tags, and beside it the tags as they travel. Measured
-- against a join table on PostgreSQL 18, 1,000,000 bookmarks with 3 tags each (milliseconds, medians):
--
--                                          join table   array, tags looked up   array, tags stored as text
--   import of 10,000, in the server               149                      60                           88
--   list of 50 / of 500, CPU of Postgres   0.66 / 4.6              0.61 / 3.8                   0.26 / 2.2
--   tags/list of 300 tags, 100,000 bookmarks       85                    0.31                         0.31
--   search by a rare tag in 100,000              0.53         0.18 (18 without GIN)                   0.18
--   rename a tag on 1,000 of 100,000              0.3                     0.5                           52
--   delete a tag on 1,000 of 100,000                6                      38                           58
--   size of what carries the tags              380 MB                   54 MB          152 MB, GIN 43 MB
--
-- Reads outnumber renames by far; a rename rewrites what carries the tag (1.6 s for 100,000 bookmarks), found by the GIN
-- index (import of 10,000: 77 instead of 60).
--
-- Columns of fixed width come first, then what searches scan, then what only responses need.
create table bookmarks (
  user_id bigint,
  id bigint default nextval('bookmarks_id_seq'),
  -- the first 128 bits of the SHA-256 of the url's WHATWG serialisation: what makes two urls the same. A url itself
  -- can be longer than an index entry.
  url_key uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- the url's host as WHATWG writes it (lower case, IDNA), without a dot at its end
  host text collate "C" not null default '',
  -- folded url, title and comment, a line each (white space within them is a blank): what searches scan
  search_text text collate "C" not null,
  tag_ids bigint[] not null,
  url text collate "C" not null,
  title text collate "C" not null,
  comment text collate "C" not null,
  -- its tags as they travel: `[{"id":1,"name":"a"}]`, in the order of name_key
  tags text collate "C" not null,
  constraint bookmarks_pkey primary key (user_id, id)
);

alter table bookmarks alter column user_id set statistics 0;

-- Not compressed: searches scan it where it is not packed yet, and pack it. Compressed texts are scanned in twice the time.
alter table bookmarks alter column search_text set storage external;

-- With the id: the newest of many bookmarks of one url are then its first entries.
create index bookmarks_url_key on bookmarks (user_id, url_key, id);

-- For `sort: "created"`, see docs/decisions/0050-order-by-creation.md.
create index bookmarks_created on bookmarks (user_id, created_at, id);

-- New entries wait in a list of at most 128 kB, which every search by a tag goes through and which one write in some 1,100
-- puts in its place. A list of 4 MB, as Postgres has it by default, costs a search up to 9 ms and that write 107 ms, and one
-- of 128 kB 0.1 ms and some 5 ms. An import takes 9 to 19 µs more of Postgres an entry without a list, and with one of 128 kB
-- as much as with 4 MB: docs/performance.md.
create index bookmarks_tag_ids on bookmarks using gin (user_id, tag_ids) with (gin_pending_list_limit = 128);

-- What searches by words scan: the search texts of some 60 bookmarks of a user in one page of Postgres, so that a user's
-- bookmarks lie together however they were added. Whoever writes bookmarks keeps it true in the same transaction: the blocks
-- hold each bookmark up to the last block's `last_id`, and nothing else; later ones are read from their own rows, until they
-- fill a block (64 or so: see `pack_texts`). docs/performance.md has what this costs, and what was tried beside it.
create table search_blocks (
  user_id bigint,
  -- the highest id that it held when it was made; all above that of the block before belong to it
  last_id bigint,
  -- falling
  ids bigint[] not null,
  -- the search text of each, in step
  texts text[] collate "C" not null,
  constraint search_blocks_pkey primary key (user_id, last_id)
-- a block stays in its page as long as it fits
) with (toast_tuple_target = 8160);

alter table search_blocks alter column user_id set statistics 0;
alter table search_blocks alter column ids set storage external;
alter table search_blocks alter column texts set storage external;

-- One row beside each block. A search reads a block only where its signature has all the bits of the terms, or where it has
-- none yet: a sweep makes signatures after the writes, for SQL would take a thousand times as long (src/domain/bloom-filters.ts).
create table search_signatures (
  user_id bigint,
  last_id bigint,
  -- how many times the block was written anew with other texts: a signature of the texts before is not written then
  edits integer not null default 0,
  -- a bit for each sequence of up to five letters that the block's texts hold
  bits bytea,
  constraint search_signatures_pkey primary key (user_id, last_id)
);

alter table search_signatures alter column user_id set statistics 0;
-- four in a page, and none beside it
alter table search_signatures alter column bits set storage plain;

create index search_signatures_missing on search_signatures (user_id, last_id) where bits is null;
