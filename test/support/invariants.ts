import postgres from 'postgres';
import { buildBloomFilter } from '../../src/domain/bloom-filters.ts';
import { searchText } from '../../src/domain/text.ts';
import { hrefHost, urlKey } from '../../src/store/bookmarks.ts';

/** The conditions that a database must meet whenever no statement is running, even after a crash. */

const RECOUNTS = `
  with held as (
    select user_id, count(*) as bookmarks from bookmarks group by user_id
  ), named as (
    select user_id, count(*) as tags from tags group by user_id
  ), carried as (
    select b.user_id, c.tag_id, count(*) as bookmarks, count(distinct b.id) as distinct_bookmarks
    from bookmarks b cross join unnest(b.tag_ids) as c (tag_id)
    group by b.user_id, c.tag_id
  ), rendered as (
    select b.user_id, b.id, b.tag_ids, b.tags, coalesce((
      select '[' || string_agg('{"id":' || t.id || ',"name":' || to_json(t.name) || '}', ',' order by t.name_key) || ']'
      from tags t
      where t.user_id = b.user_id and t.id = any (b.tag_ids)
    ), '[]') as expected
    from bookmarks b
  )
  select format('account %s counts %s bookmarks of %s', a.user_id, a.bookmark_count, coalesce(h.bookmarks, 0)) as fault
  from accounts a left join held h using (user_id)
  where a.bookmark_count <> coalesce(h.bookmarks, 0)
  union all
  select format('account %s counts %s bookmarks in its trash of %s', a.user_id, a.trash_count, coalesce(t.bookmarks, 0))
  from accounts a left join (
    select user_id, count(*) as bookmarks from trash group by user_id
  ) t using (user_id)
  where a.trash_count <> coalesce(t.bookmarks, 0)
  union all
  select format('a bookmark in the trash has no account %s', t.user_id)
  from trash t left join accounts a using (user_id)
  where a.user_id is null
  union all
  select format('account %s counts %s tags of %s', a.user_id, a.tag_count, coalesce(n.tags, 0))
  from accounts a left join named n using (user_id)
  where a.tag_count <> coalesce(n.tags, 0)
  union all
  select format('tag %s of %s counts %s bookmarks of %s', t.id, t.user_id, t.bookmark_count, coalesce(c.bookmarks, 0))
  from tags t left join carried c on c.user_id = t.user_id and c.tag_id = t.id
  where t.bookmark_count <> coalesce(c.bookmarks, 0)
  union all
  select format('bookmarks of %s carry tag %s, which is not theirs', c.user_id, c.tag_id)
  from carried c left join tags t on t.user_id = c.user_id and t.id = c.tag_id
  where t.id is null
  union all
  select format('bookmarks of %s carry tag %s twice', c.user_id, c.tag_id)
  from carried c
  where c.bookmarks <> c.distinct_bookmarks
  union all
  select format('bookmark %s of %s shows tags %s, not %s', r.id, r.user_id, r.tags, r.expected)
  from rendered r
  where r.tags <> r.expected
  union all
  select format('bookmark %s has no account %s', b.id, b.user_id)
  from bookmarks b left join accounts a using (user_id)
  where a.user_id is null
  union all
  select format('import %s of %s is %s and keeps bytes', i.id, i.user_id, i.state)
  from imports i
  where i.state in ('done', 'cancelled')
    and exists (
      select user_id, import_id from import_chunks c where c.user_id = i.user_id and c.import_id = i.id
      union all
      select user_id, import_id from import_batches p where p.user_id = i.user_id and p.import_id = i.id
    )
  union all
  select format('key %s of %s names the import %s, which is %s', k.key, k.user_id, k.import_id, coalesce(i.state, 'gone'))
  from idempotency_keys k left join imports i on i.user_id = k.user_id and i.id = k.import_id
  where k.import_id is not null and i.state is distinct from 'done'
  union all
  select format('account %s counts %s bytes of kept responses of %s', a.user_id, a.kept_bytes, coalesce(k.bytes, 0))
  from accounts a left join (
    select user_id, sum(bytes) as bytes from idempotency_keys group by user_id
  ) k using (user_id)
  where a.kept_bytes <> coalesce(k.bytes, 0)
  union all
  select format('bookmark %s of %s is packed as %s, and is %s', coalesce(p.id, b.id), user_id, p.line, b.line)
  from (
    select s.user_id, packed.id, packed.line
    from search_blocks s
    cross join lateral unnest(s.ids, s.texts) as packed (id, line)
  ) p
  full join (
    select b.user_id, b.id, b.search_text as line
    from bookmarks b
    where b.id <= (select max(s.last_id) from search_blocks s where s.user_id = b.user_id)
  ) b using (user_id, id)
  where p.line is distinct from b.line
  union all
  select format('account %s counts %s unpacked bookmarks of %s', user_id, a.unpacked, u.bookmarks)
  from (
    select b.user_id, count(*) as bookmarks
    from bookmarks b
    where b.id > coalesce((select max(s.last_id) from search_blocks s where s.user_id = b.user_id), 0)
    group by b.user_id
  ) u
  join accounts a using (user_id)
  where a.unpacked < u.bookmarks
  union all
  select format('blocks of %s overlap at %s', user_id, last_id)
  from (
    select user_id, last_id, ids[1] as highest, ids[cardinality(ids)] as lowest,
      lag(last_id) over (partition by user_id order by last_id) as before
    from search_blocks
  ) s
  where highest > last_id or lowest <= before
  union all
  select format('block %s of %s has a filter: %s', coalesce(b.last_id, s.last_id), user_id, s.last_id is not null)
  from search_blocks b full join search_signatures s using (user_id, last_id)
  where b.last_id is null or s.last_id is null`;

interface StoredText {
  id: number;
  user_id: number;
  url: string;
  url_key: string;
  host: string;
  title: string;
  comment: string;
  search_text: string;
}

/**
 * Compares redundant data, such as counters, tags as JSON, search texts and url keys, with its source. Returns a
 * sentence for each fault. A test expects `[]`. Nothing may write to the database meanwhile.
 */
export async function findFaults(databaseUrl: string): Promise<string[]> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    const faults = (await sql.unsafe<{ fault: string }[]>(RECOUNTS)).map(({ fault }) => fault);
    const rows = sql<StoredText[]>`
      select id, user_id, url, url_key, host, title, comment, search_text from bookmarks`.cursor(5_000);
    for await (const page of rows) faults.push(...page.flatMap(findTextFaults));
    const blocks = sql<SignedBlock[]>`
      select user_id, last_id, array_to_string(texts, e'\n') as texts, bits
      from search_blocks join search_signatures using (user_id, last_id)
      where bits is not null`.cursor(100);
    for await (const page of blocks) faults.push(...page.filter(lacksBits).map(nameBlock));
    return faults;
  } finally {
    await sql.end({ timeout: 0 });
  }
}

function findTextFaults(row: StoredText): string[] {
  const faults: string[] = [];
  if (row.search_text !== searchText(row)) faults.push(`bookmark ${row.id} has a stale search text`);
  if (row.host !== hrefHost(new URL(row.url).href)) faults.push(`bookmark ${row.id} has another host`);
  if (row.url_key !== urlKey(row.url)) faults.push(`bookmark ${row.id} has the key of another url`);
  return faults;
}

interface SignedBlock {
  user_id: string;
  last_id: string;
  texts: string;
  bits: Buffer;
}

const lacksBits = ({ texts, bits }: SignedBlock): boolean =>
  buildBloomFilter(texts).some((byte, n) => (byte & bits[n]!) !== byte);

const nameBlock = (block: SignedBlock): string =>
  `the filter of block ${block.last_id} of ${block.user_id} lacks bits of its texts`;
