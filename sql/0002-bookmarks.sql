-- works-with: 2
-- Creates the tables of bookmarks, tags and the trash, and the tables that searches read.

-- This extension is trusted since PostgreSQL 13, so the owner of the database may create it.
create extension if not exists btree_gin;

-- All users share one sequence of bookmark ids. `cache 1` means that a connection takes each id when it needs it. With
-- a larger cache, each connection would reserve several ids, and ids would be used out of order.
create sequence bookmarks_id_seq as bigint maxvalue 9007199254740991 cache 1;
create sequence tags_id_seq as bigint maxvalue 9007199254740991;

create table tags (
  user_id bigint,
  id bigint default nextval('tags_id_seq'),
  name text collate "C" not null,
  -- the normalized name, which is unique for the user; tags are listed in the order of their normalized names
  name_key text collate "C" not null,
  bookmark_count counter not null default 0,
  created_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  constraint tags_pkey primary key (user_id, id),
  constraint tags_name_unique unique (user_id, name_key),
  constraint tags_account foreign key (user_id) references accounts (user_id) on delete cascade
) with (fillfactor = 70);

alter table tags alter column user_id set statistics 0;

-- This table has no foreign key to `accounts`. Every function that writes bookmarks holds the lock on the user's row in
-- `accounts` anyway, and a foreign key would slow down adds and imports (docs/decisions/0096-smaller-choices.md).
--
-- A bookmark stores its tags twice: as an array of tag ids, and as JSON text for responses. Reads are much more
-- frequent than renames of tags. So it is acceptable that a rename rewrites the text of every bookmark with the tag.
-- The GIN index finds these bookmarks (docs/decisions/0181-tags-as-an-array.md).
--
-- The order of the columns: first columns of fixed width, then columns that searches scan, then columns that only
-- responses need.
create table bookmarks (
  user_id bigint,
  id bigint default nextval('bookmarks_id_seq'),
  -- Two urls are equal if they have the same key. The key is the first 128 bits of the SHA-256 of the url's WHATWG
  -- serialization. The key is indexed in place of the url, which can be too long for an index entry.
  url_key uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- the host of the url as the WHATWG URL standard serializes it (lower case, IDNA), without a final dot
  host text collate "C" not null default '',
  -- the text that searches scan: the normalized url, title and comment, each on a line of its own; within a line, each
  -- white space character is replaced by a blank
  search_text text collate "C" not null,
  tag_ids bigint[] not null,
  url text collate "C" not null,
  title text collate "C" not null,
  comment text collate "C" not null,
  -- the tags as JSON text in the order of `name_key`, for example `[{"id":1,"name":"a"}]`
  tags text collate "C" not null,
  constraint bookmarks_pkey primary key (user_id, id)
);

alter table bookmarks alter column user_id set statistics 0;

-- `external` storage is not compressed. Searches scan these texts until they are packed into `search_blocks`, and a
-- scan of compressed texts takes two to three times as long.
alter table bookmarks alter column search_text set storage external;

-- The next two indexes end with `id + 0`, which orders bookmarks with the same url or time. If they ended with the
-- plain id, Postgres would also use them to look up ids, and read all index entries of the user
-- (docs/decisions/0093-plans-that-stay-good.md).

create index bookmarks_url_key on bookmarks (user_id, url_key, (id + 0));

-- This index serves searches with `sort: "created"` (docs/decisions/0050-order-by-creation.md).
create index bookmarks_created on bookmarks (user_id, created_at, (id + 0));

-- New index entries first go to a pending list of at most 128 kB. Every search by a tag reads the whole list. The write
-- that fills the list moves the list's entries into the index. With a longer list, these searches and writes would take
-- longer (docs/decisions/0091-pending-list-of-the-tag-index.md).
create index bookmarks_tag_ids on bookmarks using gin (user_id, tag_ids) with (gin_pending_list_limit = 128);

-- The trash keeps deleted bookmarks until they are restored, deleted permanently, or too old.
--
-- Like `bookmarks`, this table has no foreign key to `accounts`. `delete_user` deletes the user's rows from it.
create table trash (
  user_id bigint,
  -- the id that the bookmark had before it was deleted
  id bigint,
  deleted_at timestamptz not null,
  -- the row of `bookmarks` as JSON; if a column was added later, the JSON lacks it
  bookmark jsonb not null,
  constraint trash_pkey primary key (user_id, id)
);

alter table trash alter column user_id set statistics 0;

create index trash_newest on trash (user_id, deleted_at, id);
create index trash_deleted_at on trash (deleted_at);

-- Searches by words scan this table. A block is a row with the search texts of about 60 bookmarks of one user, and
-- fills one page of Postgres. So a search reads few pages, even if the user's bookmarks were added at different times
-- and are on many pages.
--
-- A function that deletes a bookmark or changes its search text also updates the bookmark's block, in the same
-- transaction. So the blocks of a user hold exactly the bookmarks with ids up to the user's highest `last_id`. Searches
-- read newer bookmarks from `bookmarks`, until `pack_texts` puts them into a block. Record 0090 has the costs and the
-- alternatives (docs/decisions/0090-search-blocks-with-bloom-filters.md).
create table search_blocks (
  user_id bigint,
  -- the highest id in the block when the block was made; all ids in the block exceed the previous block's `last_id`
  last_id bigint,
  -- the ids of the bookmarks, in descending order
  ids bigint[] not null,
  -- the search text of each id, at the same position
  texts text[] collate "C" not null,
  constraint search_blocks_pkey primary key (user_id, last_id)
-- With this target, Postgres keeps the texts of a block in the block's row if they fit into a page.
) with (toast_tuple_target = 8160);

alter table search_blocks alter column user_id set statistics 0;
alter table search_blocks alter column ids set storage external;
alter table search_blocks alter column texts set storage external;

-- One row for each row of `search_blocks`, with the Bloom filter of the block. A search reads a block if the filter has
-- all bits of the search terms, or if the block has no filter yet. A sweep of the service builds the filters later,
-- because SQL would take a thousand times as long (src/domain/bloom-filters.ts).
create table search_signatures (
  user_id bigint,
  last_id bigint,
  -- the number of edits of the block's texts; if it rises while a filter is built, that filter is discarded
  edits integer not null default 0,
  -- the filter, in which each sequence of up to five letters in the texts sets a bit; null until it is built
  bits bytea,
  constraint search_signatures_pkey primary key (user_id, last_id)
);

alter table search_signatures alter column user_id set statistics 0;
-- `plain` storage keeps each filter inside its row. A page holds four such rows.
alter table search_signatures alter column bits set storage plain;

create index search_signatures_missing on search_signatures (user_id, last_id) where bits is null;
