-- works-with: 2
-- Bookmarks and tags.

-- A trusted extension since PostgreSQL 13: the owner of the database may create it.
create extension if not exists btree_gin;

-- One sequence for all users. It has no cache: with one, each session would reserve ids and use them out of order.
create sequence bookmarks_id_seq as bigint maxvalue 9007199254740991 cache 1;
create sequence tags_id_seq as bigint maxvalue 9007199254740991;

create table tags (
  user_id bigint,
  id bigint default nextval('tags_id_seq'),
  name text collate "C" not null,
  -- the name, normalized by the service: unique ignoring case; tags are listed in its order
  name_key text collate "C" not null,
  bookmark_count counter not null default 0,
  created_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  constraint tags_pkey primary key (user_id, id),
  constraint tags_name_unique unique (user_id, name_key),
  constraint tags_account foreign key (user_id) references accounts (user_id) on delete cascade
) with (fillfactor = 70);

alter table tags alter column user_id set statistics 0;

-- There is no foreign key to accounts. Every writer of bookmarks holds the lock on the account's row, and the key
-- would slow down adds and imports (docs/decisions/0096-smaller-choices.md).
--
-- A bookmark stores its tags twice: as an array of tag ids, and as rendered text. Each tag counts its bookmarks.
-- Reads outnumber renames by far, so a rename may rewrite the text of every bookmark with the tag. The GIN index
-- finds these bookmarks. See docs/decisions/0181-tags-as-an-array.md.
--
-- Columns of fixed width come first, then those that searches scan, then those that only responses need.
create table bookmarks (
  user_id bigint,
  id bigint default nextval('bookmarks_id_seq'),
  -- Urls with the same key are equal. The key is the first 128 bits of the SHA-256 of the url's WHATWG serialization.
  -- A url itself can be too long for an index entry.
  url_key uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- the url's host as WHATWG writes it (lower case, IDNA), without a final dot
  host text collate "C" not null default '',
  -- the text that searches scan: normalized url, title and comment, one line each, with blanks for all white space
  search_text text collate "C" not null,
  tag_ids bigint[] not null,
  url text collate "C" not null,
  title text collate "C" not null,
  comment text collate "C" not null,
  -- its rendered tags: `[{"id":1,"name":"a"}]`, in the order of name_key
  tags text collate "C" not null,
  constraint bookmarks_pkey primary key (user_id, id)
);

alter table bookmarks alter column user_id set statistics 0;

-- Not compressed, because searches scan these texts until they are packed. Scanning compressed texts takes two to three
-- times as long.
alter table bookmarks alter column search_text set storage external;

-- Includes the id, so that the newest bookmarks of one url come first.
create index bookmarks_url_key on bookmarks (user_id, url_key, id);

-- For `sort: "created"`, see docs/decisions/0050-order-by-creation.md.
create index bookmarks_created on bookmarks (user_id, created_at, id);

-- New entries wait in a pending list of at most 128 kB. Every search by a tag reads the whole list. The write that
-- fills the list also moves its entries into the index. A longer list would slow down both
-- (docs/decisions/0091-pending-list-of-the-tag-index.md).
create index bookmarks_tag_ids on bookmarks using gin (user_id, tag_ids) with (gin_pending_list_limit = 128);

-- Searches by words scan this table. A block holds the search texts of about 60 bookmarks of one user, in one page of
-- Postgres. So the texts of a user are stored together, although users add bookmarks at different times.
--
-- Every writer of bookmarks keeps the blocks up to date in the same transaction. The blocks hold exactly the
-- bookmarks up to the last block's `last_id`. Later bookmarks are read from their own rows until they fill a block
-- (see `pack_texts`). Costs and alternatives: docs/decisions/0090-search-blocks-with-bloom-filters.md.
create table search_blocks (
  user_id bigint,
  -- the highest id when the block was made; all ids in the block are above the previous block's `last_id`
  last_id bigint,
  -- in descending order
  ids bigint[] not null,
  -- the search text of each id, at the same position
  texts text[] collate "C" not null,
  constraint search_blocks_pkey primary key (user_id, last_id)
-- stores the texts inside the page if they fit
) with (toast_tuple_target = 8160);

alter table search_blocks alter column user_id set statistics 0;
alter table search_blocks alter column ids set storage external;
alter table search_blocks alter column texts set storage external;

-- One row for each block, with its Bloom filter. A search reads a block only if its filter has all bits of the terms,
-- or if it has no filter yet. A sweep builds the filters later, outside of Postgres, because SQL takes a thousand
-- times as long (src/domain/bloom-filters.ts).
create table search_signatures (
  user_id bigint,
  last_id bigint,
  -- the number of changes of the block's texts; a filter that was built from earlier texts is discarded
  edits integer not null default 0,
  -- the filter: a bit for each sequence of up to five letters in the block's texts
  bits bytea,
  constraint search_signatures_pkey primary key (user_id, last_id)
);

alter table search_signatures alter column user_id set statistics 0;
-- stores filters inside the page; a page holds four
alter table search_signatures alter column bits set storage plain;

create index search_signatures_missing on search_signatures (user_id, last_id) where bits is null;
