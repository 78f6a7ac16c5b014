/** A mistake in the code or the SQL that a test must notice. */
export interface Mutant {
  file: string;
  /** The text to replace, which occurs exactly once in the file. */
  from: string;
  to: string;
  /** The test that must fail, as `file › title`. Only this test is run. */
  caughtBy: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    file: 'src/routes/batch.ts',
    from: "keyRequest(parseIdempotencyKey(key, 'key'), path, parsed)",
    to: 'undefined',
    caughtBy:
      'test/spec-4-2-batch.test.ts › the same batch sent many times to two replicas at once happens once',
  },
  {
    file: 'sql/functions/write-batch.sql',
    from: 'from jsonb_array_elements(p_operations) loop',
    to: 'from jsonb_array_elements(p_operations) order by value loop',
    caughtBy:
      'test/spec-4-2-batch.test.ts › runs adds, edits and deletions in order, and returns the response of each',
  },
  {
    file: 'sql/functions/write-batch.sql',
    from: 'if p_is_atomic and v_outcome is not null then',
    to: 'if false then',
    caughtBy: 'test/spec-4-2-batch.test.ts › the cap of the free tier refuses the whole batch',
  },
  {
    file: 'sql/functions/write-batch.sql',
    from: "(v_operation ->> 'if_updated_at')::timestamptz, p_change",
    to: 'null, p_change',
    caughtBy:
      'test/spec-4-2-conditional.test.ts › exactly one of many simultaneous writes for one version succeeds on two replicas, whether sent alone or in batches',
  },
  {
    file: 'sql/functions/write-batch.sql',
    from: 'if not lock_account(p_user_id, p_token_hash) then',
    to: 'if not token_is_valid(p_user_id, p_token_hash) then',
    caughtBy:
      'test/revocation-race.test.ts › /bookmarks/batch changes nothing if its token is revoked while it waits',
  },
  {
    file: 'sql/functions/read-digest.sql',
    from: 'least(greatest(b.tag_ids[1], b.tag_ids[2]), b.tag_ids[3])',
    to: 'b.tag_ids[2]',
    caughtBy:
      'test/spec-4-2-digest.test.ts › divides all bookmarks into 16 parts of about equal count, which cover all ids',
  },
  {
    file: 'sql/functions/read-digest.sql',
    from: 'order by line.id)',
    to: 'order by line.id desc)',
    caughtBy:
      'test/spec-4-2-digest.test.ts › divides all bookmarks into 16 parts of about equal count, which cover all ids',
  },
  {
    file: 'sql/functions/read-digest.sql',
    from: 'b.id > v_after and',
    to: 'b.id >= v_after and',
    caughtBy:
      'test/spec-4-2-digest.test.ts › takes only the bookmarks after after_id and up to up_to_id, and of the own account',
  },
  {
    file: 'sql/functions/read-digest.sql',
    from: 'id > p_after and id <= p_last;',
    to: 'id > p_after;',
    caughtBy:
      'test/spec-4-2-digest.test.ts › takes only the bookmarks after after_id and up to up_to_id, and of the own account',
  },
  {
    file: 'sql/functions/read-digest.sql',
    from: "',' order by tag.id)",
    to: "',' order by tag.id desc)",
    caughtBy:
      'test/spec-4-2-digest.test.ts › divides all bookmarks into 16 parts of about equal count, which cover all ids',
  },
  {
    file: 'src/client/verify.ts',
    from: '?? versions)) === part.digest',
    to: '?? versions)).length === part.digest.length',
    caughtBy: 'test/verify.test.ts › any faults, in accounts of any size',
  },
  {
    file: 'src/client/verify.ts',
    from: 'last?.upToId === part.afterId &&',
    to: 'last?.upToId === part.upToId &&',
    caughtBy: 'test/verify.test.ts › a copy that has lost everything',
  },
  {
    file: 'src/client/verify.ts',
    from: 'Math.ceil(count / 2)',
    to: 'count',
    caughtBy:
      'test/verify.test.ts › if digests of all bookmarks take too long, the client asks for smaller ranges',
  },
  {
    file: 'src/client/repair.ts',
    from: 'if (changes.hasBookmark(id)) continue;',
    to: '',
    caughtBy: 'test/verify.test.ts › a bookmark that another client changes meanwhile is left to the mirror',
  },
  {
    file: 'src/client/repair.ts',
    from: "if (kind === 'lost' && id > knownId) return undefined;",
    to: '',
    caughtBy:
      'test/verify.test.ts › a new bookmark that is deleted right after it was read does not come into the copy',
  },
  {
    file: 'src/client/repair.ts',
    from: 'afterId === 0 ? Number.MIN_SAFE_INTEGER : afterId',
    to: 'afterId',
    caughtBy: 'test/verify.test.ts › any faults, in accounts of any size',
  },
  {
    file: 'src/client/unread-changes.ts',
    from: '!this.#tags.has(id) || this.#tags.get(id) !== undefined',
    to: 'id > 0',
    caughtBy: 'test/verify.test.ts › a tag that is deleted meanwhile is not a fault',
  },
  {
    file: 'src/client/unread-changes.ts',
    from: 'if (!this.#bookmarks.has(id)) this.#bookmarks.set(id, undefined);',
    to: '{}',
    caughtBy:
      'test/verify.test.ts › a bookmark that was added, and deleted before a page contained it, is not a fault',
  },
  {
    file: 'src/client/mirror.ts',
    from: '|| storedVersion === wrongVersions?.[id]',
    to: '',
    caughtBy: 'test/verify.test.ts › any faults, in accounts of any size',
  },
  {
    file: 'src/routes/long-poll.ts',
    from: 'Math.min(given, config.syncWaitSeconds)',
    to: 'config.syncWaitSeconds',
    caughtBy: 'test/spec-4-2-sync.test.ts › 0 responds immediately, with waited false',
  },
  {
    file: 'sql/functions/find-response.sql',
    from: "interval '24 hours'",
    to: "interval '12 hours'",
    caughtBy: 'test/idempotency.test.ts › a key is kept for 24 hours',
  },
  {
    file: 'sql/functions/find-response.sql',
    from: 'v_stored.request_hash = p_request_hash',
    to: 'true',
    caughtBy:
      'test/idempotency.test.ts › another body or path with a used key is a VALIDATION_ERROR and changes nothing',
  },
  {
    file: 'sql/functions/create-own-token.sql',
    from: "kind = 'api' and expires_at > now()\n  ) >=",
    to: "kind = 'api'\n  ) >=",
    caughtBy: 'test/own-tokens.test.ts › creates at most 50 tokens per account, even in concurrent requests',
  },
  {
    file: 'sql/functions/revoke-other-sessions.sql',
    from: 'token_hash <> p_token_hash and expires_at > now()',
    to: 'token_hash <> p_token_hash',
    caughtBy:
      'test/own-tokens.test.ts › with /sessions/revoke-others ends all other sessions, and no API token',
  },
  {
    file: 'src/admin/commands.ts',
    from: 'users.length > limit',
    to: 'users.length >= limit',
    caughtBy: 'test/admin.test.ts › list goes through all users by id, in pages',
  },
  {
    file: 'src/cli/display-text.ts',
    from: '\\u202a-\\u202e\\u2066-\\u2069]+/g',
    to: '\\u202a-\\u202e]+/g',
    caughtBy:
      'test/formats.test.ts › displayed texts of users contain no control characters, overrides or isolates',
  },
  {
    file: 'src/cli/environment.ts',
    from: 'http.setGlobalProxyFromEnv(proxies);',
    to: '',
    caughtBy: 'test/cli-shell.test.ts › carries the requests, unless NO_PROXY names the host of the service',
  },
  {
    file: 'src/coordination/redis/notifier.ts',
    from: 'addChannels(this.#pending, this.#publishedBefore);',
    to: '',
    caughtBy:
      'test/redis-faults.test.ts › a notification that only an abandoned server received is published again on the next one',
  },
  {
    file: 'src/formats/csv.ts',
    from: "  liked: 'favorite',\n",
    to: '',
    caughtBy: 'test/formats.test.ts › the folder Liked of Instapaper becomes the tag favorite',
  },
  {
    file: 'src/formats/dates.ts',
    from: 'date.setUTCHours(hour',
    to: 'date.setHours(hour',
    caughtBy:
      'test/formats.test.ts › a date without an offset is UTC, even in the time zone Pacific/Kiritimati',
  },
  {
    file: 'src/formats/netscape.ts',
    from: "this.text(this.#isInDescription() ? '\\n' : ' ');",
    to: '',
    caughtBy: 'test/formats.test.ts › a line break in a description of a bookmark file is kept',
  },
  {
    file: 'src/formats/netscape.ts',
    from: 'this.#latest = undefined;\n        this.#target = this.#heading.name;',
    to: 'this.#target = this.#heading.name;',
    caughtBy:
      'test/formats.test.ts › the description of a folder is not added to the bookmark before the folder',
  },
  {
    file: 'src/formats/services.ts',
    from: 'bookmark.title || bookmark.website_title',
    to: 'bookmark.title',
    caughtBy: 'test/import-samples.test.ts › reads linkding.json',
  },
  {
    file: 'src/client/merge.ts',
    from: 'if_updated_at: row.updated_at',
    to: 'if_updated_at: undefined',
    caughtBy:
      'test/two-way.test.ts › five devices that may die at any step lose no write, apply none twice, and overwrite nothing that they have not seen',
  },
  {
    file: 'src/client/merge.ts',
    from: 'if (theirs !== change.from) {',
    to: 'if (theirs === undefined) {',
    caughtBy:
      'test/two-way.test.ts › five devices that may die at any step lose no write, apply none twice, and overwrite nothing that they have not seen',
  },
  {
    file: 'src/client/push.ts',
    from: '{ do: intent.kind, key, ...body }',
    to: '{ do: intent.kind, key: randomId(), ...body }',
    caughtBy:
      'test/outbox-batches.test.ts › sends a batch whose response was lost again, with the same keys, and to another replica',
  },
  {
    file: 'src/client/push.ts',
    from: 'return [...chosen.values()].slice(0, BOUNDS.operationsPerBatch);',
    to: 'return [...chosen.values()].slice(0, BOUNDS.operationsPerBatch).reverse();',
    caughtBy: 'test/outbox-batches.test.ts › sends the first write of 500 bookmarks at a time',
  },
  {
    file: 'src/client/push.ts',
    from: "if (intent.kind === 'add' && isAddBlocked) break;",
    to: '',
    caughtBy: 'test/outbox-batches.test.ts › lets no add overtake a deletion that makes room for it',
  },
  {
    file: 'src/client/batch-room.ts',
    from: 'Math.min(this.#bytes, this.#separators, this.#tags)',
    to: 'this.#bytes',
    caughtBy:
      'test/outbox-batches.test.ts › keeps its batches within the size and the number of values that the service accepts',
  },
  {
    file: 'sql/functions/sweep-tokens.sql',
    from: " and expires_at > '-infinity'",
    to: '',
    caughtBy: 'test/suspension.test.ts › keeps its tokens when a sweep deletes expired ones',
  },
  {
    file: 'sql/functions/open-session.sql',
    from: 'v_suspended_at is not null',
    to: 'false',
    caughtBy: 'test/suspension.test.ts › keeps an invite that was refused during the suspension',
  },
  {
    file: 'src/coordination/redis/sliding-window.lua',
    from: "string.format('%d', number + 1)",
    to: 'now',
    caughtBy: 'test/rate-limit.test.ts › counts requests of the same microsecond separately',
  },
  {
    file: 'sql/functions/edit-bookmark.sql',
    from: 'v_updated_at <> p_if_updated_at',
    to: 'false',
    caughtBy:
      'test/spec-4-2-conditional.test.ts › are CONFLICT for another version, and change nothing, including tags and counts',
  },
  {
    file: 'sql/functions/delete-bookmark.sql',
    from: 'v_updated_at <> p_if_updated_at',
    to: 'false',
    caughtBy:
      'test/spec-4-2-conditional.test.ts › are CONFLICT for another version, and change nothing, including tags and counts',
  },
  {
    file: 'sql/functions/next-updated-at.sql',
    from: "interval '1 millisecond'",
    to: "interval '0'",
    caughtBy:
      'test/spec-4-2-conditional.test.ts › increases with every change by at least a millisecond, whatever the clock says',
  },
  {
    file: 'sql/functions/move-to-trash.sql',
    from: '(deleted_at, id) <= (v_last_at, v_last_id)',
    to: '(deleted_at, id) < (v_last_at, v_last_id)',
    caughtBy:
      "test/spec-4-6-trash.test.ts › the trash has the account's limit of bookmarks, and the oldest ones are deleted first",
  },
  {
    file: 'sql/functions/move-to-trash.sql',
    from: "case when is_premium then limit_of('premium_trash') else p_trash_limit end",
    to: 'p_trash_limit',
    caughtBy:
      'test/spec-4-6-trash.test.ts › the trash of a premium account holds more than that of a free account',
  },
  {
    file: 'src/http/streamed-pages.ts',
    from: 'const releaseReserved = outboundBacklog.hold(userId, PAGE_BYTES);',
    to: 'const releaseReserved = () => {};',
    caughtBy:
      'test/spec-4-4-import-export.test.ts › reads a page only if there is room for it beside the pages that other exports are reading',
  },
  {
    file: 'src/routes/bookmarks.ts',
    from: 'body.trash ? trashLimitOf(context.config) : null',
    to: 'trashLimitOf(context.config)',
    caughtBy: 'test/spec-4-6-trash.test.ts › by ids with {} is permanent, and followers of changes see it',
  },
  {
    file: 'src/routes/trash.ts',
    from: 'notifyAfter(context, principal, notifyPolls, () =>',
    to: "notifyAfter(context, principal, (notifier, userId) => notifier.notify('changes ' + userId), () =>",
    caughtBy:
      'test/spec-4-6-trash.test.ts › returns a bookmark to the collection with a new id and all its fields, and followers see it',
  },
  {
    file: 'sql/functions/suspend-user.sql',
    from: 'coalesce(a.suspended_at, v_now)',
    to: 'v_now',
    caughtBy:
      'test/suspension.test.ts › is refused with ACCOUNT_SUSPENDED for any of its tokens, and works as before after it is resumed',
  },
  {
    file: 'sql/functions/sign-in-by-passkey.sql',
    from: 'counter < p_counter or',
    to: 'counter <= p_counter or',
    caughtBy: 'test/passkeys.test.ts › if it comes from a copied passkey, whose counter does not increase',
  },
  {
    file: 'sql/functions/rename-tag.sql',
    from: ' and id <> all (v_ids)',
    to: '',
    caughtBy:
      'test/tag-paths.test.ts › from Work to Work/x renames ["Work","work/x","Work/x/x"] to ["Work/x","Work/x/x","Work/x/x/x"]',
  },
  {
    file: 'src/http/linkding/bodies.ts',
    from: 'if (!JSON_TYPE.test(type)) throw',
    to: 'if (false) throw',
    caughtBy:
      'test/linkding.test.ts › a request without a body may have any content type, and one with a body only JSON',
  },
  {
    file: 'src/imports/preparers.ts',
    from: '      stopWatching();\n      if (message',
    to: '      if (message',
    caughtBy:
      'test/import-body.test.ts › the time of a slow database does not count towards the limit of parsing time',
  },
  {
    file: 'src/imports/preparers.ts',
    from: 'usedMs > usedBeforeMs && usedMs < limitMs / 2',
    to: 'false',
    caughtBy:
      'test/import-body.test.ts › a body is not refused because other processes leave little time to parse it',
  },
  {
    file: 'src/imports/preparers.ts',
    from: 'usedMs > usedBeforeMs && usedMs < limitMs / 2',
    to: 'usedMs < limitMs / 2',
    caughtBy:
      'test/import-body.test.ts › a parsing process that hangs after one chunk does not block imports forever',
  },
  {
    file: 'sql/functions/begin-import.sql',
    from: "if limit_of('kept_bytes') <",
    to: "if 10 * limit_of('kept_bytes') <",
    caughtBy:
      'test/spec-4-4-import-export.test.ts › is RATE_LIMITED while more than 16 MiB of errors of earlier imports were not read',
  },
  {
    file: 'sql/functions/begin-import.sql',
    from: "  perform pg_advisory_xact_lock(hashtextextended('imports.bytes', 0));\n",
    to: '',
    caughtBy:
      'test/spec-4-4-import-export.test.ts › does not exceed the limit of staged bytes together with others that start at the same time',
  },
  {
    file: 'sql/functions/replace-tags.sql',
    from: 'case when v_is_last then v_gaining else v_next.ids end',
    to: 'v_gaining',
    caughtBy: 'test/tag-operations.test.ts › leads a follower of changes to the same collection',
  },
  {
    file: 'sql/functions/note-changes.sql',
    from: ', changed_at = excluded.changed_at',
    to: '',
    caughtBy:
      "test/spec-4-2-changes.test.ts › is not needed for a bookmark's old change that a newer one followed",
  },
  {
    file: 'sql/functions/sweep-responses.sql',
    from: 'for no key update skip locked;',
    to: 'for no key update;',
    caughtBy: 'test/sweeper.test.ts › the sweep of idempotency keys does not wait for a locked account',
  },
  {
    file: 'sql/functions/delete-user.sql',
    from: '  delete from search_signatures where user_id = v_id;\n',
    to: '',
    caughtBy: 'test/account-deletion.test.ts › deletes everything of the account, and nothing of other users',
  },
  {
    file: 'sql/functions/sweep-trash.sql',
    from: '    where user_id = v_user_id and deleted_at < now() - make_interval(days => p_days)\n',
    to: '    where user_id = v_user_id\n',
    caughtBy:
      'test/spec-4-6-trash.test.ts › a sweep deletes bookmarks that were deleted more than TRASH_DAYS ago',
  },
  {
    file: 'sql/functions/restore-bookmarks.sql',
    from: 'v_account.bookmark_count + cardinality(v_ids) > p_free_limit',
    to: 'v_account.bookmark_count > p_free_limit',
    caughtBy:
      'test/spec-4-6-trash.test.ts › refuses to exceed a limit under any concurrency, and then restores nothing',
  },
  {
    file: 'sql/functions/new-bookmark.sql',
    from: 'coalesce(p_bookmark.updated_at, p_bookmark.created_at)',
    to: 'p_now',
    caughtBy:
      'test/spec-4-6-trash.test.ts › returns a bookmark to the collection with a new id and all its fields, and followers see it',
  },
  {
    file: 'sql/functions/tag-ids-under.sql',
    from: "name_key >= p_key || '/'",
    to: 'name_key >= p_key',
    caughtBy:
      'test/tag-paths.test.ts › "a/b" finds ["a/b","A/B/c","a/b/","a/b//d"] and not ["a/bc","a","x/a/b","a/b0","a/b."]',
  },
  {
    file: 'sql/functions/claim-import.sql',
    from: 'elsif attempts < p_max_attempts',
    to: 'elsif attempts <= p_max_attempts',
    caughtBy:
      'test/import-lease.test.ts › is not given a fourth time: the import never runs, and its request gets 503',
  },
  {
    file: 'sql/functions/claim-import.sql',
    from: '    and (i.lease_until is null or i.lease_until < now())\n',
    to: '',
    caughtBy: 'test/import-lease.test.ts › is given to one of many workers that claim it at once',
  },
  {
    file: 'sql/functions/exchange-invite.sql',
    from: 'expires_at > now() and ',
    to: '',
    caughtBy: 'test/spec-4-1-account.test.ts › an unknown, a used and an expired code get the same response',
  },
  {
    file: 'sql/functions/token-is-valid.sql',
    from: ' and expires_at > now()',
    to: '',
    caughtBy:
      'test/spec-5-authentication.test.ts › are INVALID_TOKEN after their expiry, even on a replica that has cached them',
  },
  {
    file: 'sql/functions/add-passkey.sql',
    from: '>= p_limit',
    to: '> p_limit',
    caughtBy: 'test/passkeys.test.ts › if the account already has twenty',
  },
  {
    file: 'sql/functions/remove-passkey.sql',
    from: ' and credential_id <> p_credential_id)',
    to: ')',
    caughtBy: 'test/passkeys.test.ts › the last passkey cannot be removed, even if two are removed at once',
  },
  {
    file: 'sql/functions/link-identity.sql',
    from: 'elsif v_owner_id <> p_user_id then',
    to: 'elsif false then',
    caughtBy:
      'test/sign-in-link.test.ts › linking to a person who belongs to another account is refused, and neither account changes',
  },
  {
    file: 'sql/functions/first-sign-in.sql',
    from: 'not p_is_trusted or exists',
    to: 'exists',
    caughtBy:
      'test/sign-in-accounts.test.ts › is not opened if the address is verified but the operator does not trust the provider',
  },
  {
    file: 'sql/functions/edit-bookmarks.sql',
    from: '      and (b.tag_ids && v_removed_ids or not b.tag_ids @> v_added_ids)\n',
    to: '',
    caughtBy:
      'test/spec-4-2-several.test.ts › does not change bookmarks that already have these tags, not even their updated_at',
  },
  {
    file: 'sql/functions/add-unless-saved.sql',
    from: 'order by b.id + 0 desc',
    to: 'order by b.id + 0',
    caughtBy:
      'test/spec-4-2-bookmarks.test.ts › with "return" returns the newest existing bookmark unchanged',
  },
  {
    file: 'src/routes/bookmarks.ts',
    from: '      ({ existed }) => !existed,\n',
    to: '',
    caughtBy: 'test/spec-4-2-bookmarks.test.ts › an add that returns an existing bookmark notifies no poll',
  },
  {
    file: 'sql/functions/find-matches.sql',
    from: 'b.tag_ids @> alternative.tag_ids',
    to: 'b.tag_ids && alternative.tag_ids',
    caughtBy:
      'test/spec-4-2-search-options.test.ts › {"any":[{"tags":["a","b"]},{"tags":["C"]}]} finds ["MySQL 100%","Postgres Sync"], on one page and page by page in each order',
  },
  {
    file: 'src/domain/text.ts',
    from: '\\u0307+/g',
    to: '\\u0307/g',
    caughtBy: 'test/search-text.test.ts › a normalized text is normalized again to itself',
  },
  {
    file: 'src/client/search-text.ts',
    from: 'if (isJoined) group?.push(part);',
    to: 'if (isJoined) groups.push([part]);',
    caughtBy: 'test/search-text.test.ts › OR joins words, phrases and tags, more tightly than a space',
  },
  {
    file: 'sql/functions/find-any.sql',
    from: 'union select',
    to: 'union all select',
    caughtBy:
      'test/spec-4-2-search-options.test.ts › {"any":[{"tags":["A"]},{"phrases":["sync"]}]} finds ["Postgres","Postgres Sync"], on one page and page by page in each order',
  },
  {
    file: 'sql/functions/possible-alternatives.sql',
    from: 'if cardinality(v_tag_ids) = cardinality(v_keys) then',
    to: 'if true then',
    caughtBy:
      'test/spec-4-2-search-options.test.ts › {"any":[{"tags":["unknown"]}]} finds [], on one page and page by page in each order',
  },
  {
    file: 'sql/functions/find-matches.sql',
    from: "or right(b.host, length(v_filter.site) + 1) = '.' || v_filter.site",
    to: 'or right(b.host, length(v_filter.site)) = v_filter.site',
    caughtBy:
      'test/spec-4-2-search-options.test.ts › accepts xample.org as a host in any form, and includes its subdomains',
  },
  {
    file: 'sql/functions/read-changes.sql',
    from: '    or p_change < v_floor or p_change > v_last_change\n',
    to: '    or p_change > v_last_change\n',
    caughtBy:
      'test/spec-4-2-changes.test.ts › is sent for a cursor older than the kept changes, and for no other',
  },
  {
    file: 'sql/functions/sweep-changes.sql',
    from: 'greatest(changes_floor, v_last_old_number)',
    to: 'changes_floor',
    caughtBy:
      'test/spec-4-2-changes.test.ts › is sent for a cursor older than the kept changes, and for no other',
  },
  {
    file: 'sql/functions/import-bookmarks.sql',
    from: '(v_import.is_staged or v_import.idempotency_key is not null)',
    to: 'v_import.is_staged',
    caughtBy:
      'test/idempotency.test.ts › the errors of a small import with a key are stored once, and every repeat gets them',
  },
  {
    file: 'sql/functions/end-import.sql',
    from: 'case when idempotency_key is null then v_expires_at else v_keyed_expires_at end',
    to: 'v_expires_at',
    caughtBy:
      'test/sweeper.test.ts › a sweep keeps a finished import for an hour, a waiting one for a day, and a stopped upload for a minute',
  },
  {
    file: 'sql/functions/resume-user.sql',
    from: 'set expires_at = t.suspended_expires_at, suspended',
    to: "set expires_at = 'infinity', suspended",
    caughtBy:
      'test/suspension.test.ts › keeps the expiry of its tokens, and its browser keeps the session cookie',
  },
  {
    file: 'sql/functions/check-fresh-session.sql',
    from: "interval '15 minutes'",
    to: "interval '15 days'",
    caughtBy:
      'test/account-deletion.test.ts › requires a login within the last 15 minutes if the account is linked to a provider',
  },
  {
    file: 'src/cli/commands/sync.ts',
    from: '    await printBookmarks(session, batch.bookmarks, printed.size === 0);\n',
    to: '    if (cursorFile !== undefined) await storeCursor(cursorFile, batch.cursor);\n    await printBookmarks(session, batch.bookmarks, printed.size === 0);\n',
    caughtBy: 'test/cli.test.ts › stores the cursor only after printing the bookmarks: []',
  },
  {
    file: 'src/cli/commands/sync.ts',
    from: '      await printPage(session, {',
    to: '      if (cursorFile !== undefined) await storeCursor(cursorFile, page.cursor);\n      await printPage(session, {',
    caughtBy: 'test/cli.test.ts › stores the cursor only after printing the bookmarks: ["--follow"]',
  },
  {
    file: 'src/client/merge.ts',
    from: "if (row.updated_at !== seen) return { kind: 'kept' };",
    to: '',
    caughtBy:
      'test/two-way.test.ts › five devices that may die at any step lose no write, apply none twice, and overwrite nothing that they have not seen',
  },
  {
    file: 'src/client/merge.ts',
    from: 'const tags = mergeTags(row.tags, intent.addTags, intent.removeTags)',
    to: 'const tags = mergeTags(row.tags, intent.addTags, [])',
    caughtBy:
      'test/two-way.test.ts › five devices that may die at any step lose no write, apply none twice, and overwrite nothing that they have not seen',
  },
  {
    file: 'src/client/mirror.ts',
    from: 'after === undefined || after === storeCursor',
    to: 'true',
    caughtBy: 'test/mirror-stores.test.ts › the mirror that lags changes nothing and reports it',
  },
  {
    file: 'src/client/quota.ts',
    from: 'request < this.#newest',
    to: 'false',
    caughtBy: 'test/client.test.ts › the response of a poll does not restore its quota of half a minute ago',
  },
  {
    file: 'src/domain/request-kinds.ts',
    from: "'/bookmarks/changes': 'poll'",
    to: "'/bookmarks/changes': 'read'",
    caughtBy:
      'test/client.test.ts › polls and imports have a longer timeout, because the service may hold them',
  },
  {
    file: 'src/client/retry.ts',
    from: 'if (error.status === 0) return isRepeatable ||',
    to: 'if (error.status === 0) return true ||',
    caughtBy:
      'test/client.test.ts › revocations, logouts and exchanges of invites are not retried after a lost connection',
  },
  {
    file: 'src/client/retry.ts',
    from: "error.code === 'RATE_LIMITED' ? stretchedMs : Math.max(stretchedMs, growingWaitMs)",
    to: 'stretchedMs',
    caughtBy: 'test/client.test.ts › a short Retry-After of repeated failures does not keep the waits short',
  },
  {
    file: 'src/client/sqlite-store.ts',
    from: "'begin immediate'",
    to: "'begin'",
    caughtBy:
      'test/mirror-stores.test.ts › lets no other process write between the read and the write of an update',
  },
  {
    file: 'src/flow/semaphore.ts',
    from: 'line.waiting >= maxWaiting',
    to: 'line.waiting > maxWaiting',
    caughtBy: 'test/semaphore.test.ts › callers beyond the limit of waiters are refused at once',
  },
  {
    file: 'src/coordination/redis/keep-pending.lua',
    from: "local over = redis.call('zcard', KEYS[1]) + 1 -",
    to: "local over = redis.call('zcard', KEYS[1]) -",
    caughtBy:
      'test/pending-values.test.ts › the oldest values are deleted at the limit, so that many of them do not fill Redis',
  },
  {
    file: 'src/coordination/process/pending.ts',
    from: '    values?.delete(key);\n',
    to: '',
    caughtBy: 'test/pending-values.test.ts › a value can be taken once',
  },
  {
    file: 'src/sign-in/device-codes.ts',
    from: "pending.takeIfEqual('deviceSessions', nameSession(maker), nameCode(code))",
    to: "pending.take('deviceSessions', nameSession(maker)).then((name) => name === nameCode(code))",
    caughtBy:
      'test/device-codes.test.ts › of codes that a page creates at once, exactly one works, whatever order a device tries them in',
  },
  {
    file: 'src/coordination/redis/pending.ts',
    from: 'client.getdel(name)',
    to: 'client.get(name)',
    caughtBy:
      'test/pending-values.test.ts › a value that one replica stores can be taken by another one, once',
  },
  {
    file: 'src/coordination/redis/sliding-window.lua',
    from: 'if ahead > 0 then',
    to: 'if false then',
    caughtBy:
      'test/rate-limit.test.ts › admits nothing early after the clock was set back, and the key is free again after one window',
  },
  {
    file: 'src/coordination/waiters.ts',
    from: '!(this.#connected && this.#hearsOthers)',
    to: '!this.#connected',
    caughtBy:
      'test/notifications.test.ts › ends with a check at its deadline if notifications of other processes cannot arrive',
  },
  {
    file: 'src/coordination/waiters.ts',
    from: 'waiter.mayHaveMissed = true;',
    to: '',
    caughtBy: "test/notifications.test.ts › a lost connection during a waiter's query causes one check",
  },
  {
    file: 'src/coordination/waiters.ts',
    from: 'if (ofHolder >= this.#places.maxHeldPerHolder)',
    to: 'if (ofHolder > this.#places.maxHeldPerHolder)',
    caughtBy: 'test/notifications.test.ts › allow 16 for each token, independent of other tokens',
  },
  {
    file: 'src/domain/validation.ts',
    from: "new Set(['expires_in_days', 'if_updated_at'])",
    to: "new Set(['expires_in_days'])",
    caughtBy:
      'test/bad-input.test.ts › if_updated_at: is accepted at its limits, and refused beyond them with a message that names it',
  },
  {
    file: 'src/imports/entries.ts',
    from: 'compiledEntry.safeParse(dropNulls(raw),',
    to: 'compiledEntry.safeParse(raw,',
    caughtBy: 'test/bad-input.test.ts › merge mode enforces them, with imports up to 0 bytes inline',
  },
  {
    file: 'src/domain/bloom-filters.ts',
    from: 'filter[bit >> 3]! |= 1 << (bit & 7)',
    to: 'filter[bit >> 3]! = 1 << (bit & 7)',
    caughtBy: 'test/bloom-filters.test.ts › a filter has the bits of every part of its texts, in any script',
  },
  {
    file: 'src/domain/text.ts',
    from: ".replaceAll('ς', 'σ')",
    to: '',
    caughtBy: 'test/spec-4-3-tags.test.ts › an existing name is a VALIDATION_ERROR: a sigma inside',
  },
  {
    file: 'src/http/authentication.ts',
    from: "code === 'VALIDATION_ERROR' || code === 'PERMISSION_DENIED'",
    to: "code === 'VALIDATION_ERROR'",
    caughtBy:
      'test/spec-5-authentication.test.ts › makes a token with an insufficient scope INVALID_TOKEN, not PERMISSION_DENIED',
  },
  {
    file: 'src/routes/account.ts',
    from: 'length}}$',
    to: 'length},12}$',
    caughtBy:
      'test/specification.test.ts › /auth/invite takes only 8 uppercase letters and digits: not "ABCDEFGHIJKL"',
  },
  {
    file: 'src/routes/search.ts',
    from: 'searchRequest.cursor !== undefined && hasMore',
    to: 'hasMore',
    caughtBy:
      'test/specification.test.ts › returns pages, by default the first of 50, with the total and has_more',
  },
  {
    file: 'src/store/tokens.ts',
    from: 'delete from tokens\n        where user_id',
    to: "delete from tokens\n        where kind = 'session' and user_id",
    caughtBy: 'test/specification.test.ts › /logout needs only the scope read',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: 'throw countRefusal(context, request, credential, refusal)',
    to: "throw countRefusal(context, request, 'bearer', refusal)",
    caughtBy:
      'test/brute-force.test.ts › attempts beyond the limit get an error that names it, even if many come at once',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: '(await consume(ofNetwork)) ?? consume(allTries)',
    to: 'consume(ofNetwork)',
    caughtBy: 'test/brute-force.test.ts › at ten times the budget, no network can try a code',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: '(await consume(ofNetwork))',
    to: '(await check(ofNetwork))',
    caughtBy:
      'test/brute-force.test.ts › when strangers have used up the budget, each network can try one code a minute, also at once on two replicas',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: '`try:${networkKey(',
    to: '`try:${addressKey(',
    caughtBy: 'test/brute-force.test.ts › a network is an IPv4 /24 or an IPv6 /48',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: 'WITH_TRIES = 10',
    to: 'WITH_TRIES = 100',
    caughtBy: 'test/brute-force.test.ts › at ten times the budget, no network can try a code',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: 'consume({ limiter, key: `try:',
    to: 'check({ limiter, key: `try:',
    caughtBy:
      'test/brute-force.test.ts › above 300 failures for an e-mail address, a network that has not failed has one try an hour',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: '}:${networkKey(',
    to: '}:${addressKey(',
    caughtBy:
      'test/brute-force.test.ts › wrong codes of strangers for an e-mail address do not block it in other networks',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: '`address:${addressKey(',
    to: '`address:${networkKey(',
    caughtBy:
      'test/brute-force.test.ts › one client address may fail ten times an hour, whatever the e-mail addresses are',
  },
  {
    file: 'src/http/brute-force-limiter.ts',
    from: 'limit: 1 })) ??',
    to: 'limit: 9 })) ??',
    caughtBy:
      'test/brute-force.test.ts › above 300 failures for an e-mail address, a network that has failed for it has no try',
  },
  {
    file: 'src/coordination/remembering-limiter.ts',
    from: 'usedUp.reportedUntil = now + this.#windowMs',
    to: 'usedUp.reportedUntil = usedUp.until',
    caughtBy:
      'test/rate-limit.test.ts › marks all refusals of a key and window but the first, however often a slot becomes free',
  },
  {
    file: 'src/flow/connections.ts',
    from: 'this.#takenAtProgress + PROGRESS_BYTES',
    to: 'this.#takenAtProgress + 1',
    caughtBy:
      'test/clients-that-leave.test.ts › a connection is closed if its client reads less than 16 KiB within the stall time',
  },
  {
    file: 'src/flow/connections.ts',
    from: "await new Promise((resolve) => response.once('close', resolve));",
    to: '',
    caughtBy:
      'test/spec-1-requests.test.ts › a fault in a body gets its error after the responses to all valid requests',
  },
  {
    file: 'src/domain/idempotency.ts',
    from: 'path}\\n$',
    to: "''}\\n$",
    caughtBy:
      'test/idempotency.test.ts › another body or path with a used key is a VALIDATION_ERROR and changes nothing',
  },
  {
    file: 'src/http/linkding/fields.ts',
    from: '.filter((name) => !isFlag(name))',
    to: '',
    caughtBy: 'test/linkding.test.ts › is returned with all the fields that were sent',
  },
  {
    file: 'src/http/linkding/bookmarks.ts',
    from: 'found.bookmarks.slice(skippedCount, ',
    to: 'found.bookmarks.slice(0, ',
    caughtBy: 'test/linkding.test.ts › hold up to 10,000 bookmarks, from any offset',
  },
  {
    file: 'src/http/linkding/tag-names.ts',
    from: 'return others.length === 0 ? only : undefined;',
    to: 'return only;',
    caughtBy:
      'test/linkding.test.ts › is written as it is if another tag has the name with hyphens, or would be written like it',
  },
  {
    file: 'src/http/mcp.ts',
    from: '  if (origin === undefined || ',
    to: '  if (origin !== undefined || ',
    caughtBy:
      'test/mcp.test.ts › a request without a token, with a foreign Origin, or with another method is refused',
  },
  {
    file: 'src/http/quota-headers.ts',
    from: "groups.slice(0, ipv6Groups).join(':')}::",
    to: "groups.join(':')}::",
    caughtBy:
      'test/spec-8-limits.test.ts › counts IPv6 by /64, and IPv4 by address, even if it is mapped to IPv6',
  },
  {
    file: 'src/http/session-cookie.ts',
    from: "return token?.kind === 'session' ? token : undefined;",
    to: 'return token;',
    caughtBy:
      'test/web-session.test.ts › is INVALID_TOKEN, whatever it contains, and the response deletes it',
  },
  {
    file: 'src/mcp/server.ts',
    from: ", on_duplicate: 'error'",
    to: '',
    caughtBy: 'test/mcp.test.ts › writes and reads bookmarks, with versions',
  },
  {
    file: 'src/mcp/server.ts',
    from: '{ ...search, ...given, tags',
    to: '{ ...given, ...search, tags',
    caughtBy: 'test/mcp.test.ts › searches with operators and with the filters of the API, which all hold',
  },
  {
    file: 'src/observability/log.ts',
    from: "name === 'PostgresError' || name === 'ReplyError'",
    to: "name === 'PostgresError'",
    caughtBy:
      'test/redis-faults.test.ts › logs an error of Redis without its message, because that can contain arguments of the command',
  },
  {
    file: 'src/observability/metrics.ts',
    from: 'if (held) this.#waits',
    to: 'if (!held) this.#waits',
    caughtBy:
      'test/observability.test.ts › every documented metric exists after traffic, and no label names a user',
  },
  {
    file: 'src/imports/run.ts',
    from: '.catch(() => true)',
    to: '.catch(() => false)',
    caughtBy:
      'test/import-lease.test.ts › stays with a worker that could not renew it, because the database may be back before the lease expires',
  },
  {
    file: 'src/imports/run.ts',
    from: 'signal.aborted || isFaultOfDatabase(error)',
    to: 'signal.aborted',
    caughtBy:
      'test/import-lease.test.ts › uses up an attempt if the run itself fails, and none if the database fails',
  },
  {
    file: 'src/process/sweeper.ts',
    from: '    ...(hasWorker\n',
    to: '    ...(hasWorker || true\n',
    caughtBy: 'test/sweeper.test.ts › only processes with a worker queue a waiting import again',
  },
  {
    file: 'src/routes/exchange.ts',
    from: '    await endSession(context, session).catch(() => {});\n',
    to: '',
    caughtBy: 'test/rfc-9700.test.ts › a code whose use cannot be recorded leaves no session',
  },
  {
    file: 'src/routes/tags.ts',
    from: 'notifyAfter(context, principal, notifyChangesPolls, () =>\n      createTag',
    to: 'notifyAfter(context, principal, () => {}, () =>\n      createTag',
    caughtBy: 'test/spec-4-2-changes.test.ts › a created tag ends the wait at once',
  },
  {
    file: 'src/sign-in/app-codes.ts',
    from: 'grant.redirectUri === redirect_uri && verifierFits',
    to: 'verifierFits',
    caughtBy: 'test/rfc-9700.test.ts › another redirect address gets no session',
  },
  {
    file: 'src/sign-in/passkeys.ts',
    from: 'expectedOrigin: origin,\n      expectedRPID: rpId,\n      credential',
    to: "expectedOrigin: JSON.parse(Buffer.from(answer.client_data, 'base64url').toString()).origin,\n      expectedRPID: rpId,\n      credential",
    caughtBy: 'test/passkeys.test.ts › for a page of another origin',
  },
  {
    file: 'src/sign-in/pkce.ts',
    from: 'hashText(verifier) === challenge',
    to: 'hashText(verifier).length === challenge.length',
    caughtBy: 'test/rfc-9700.test.ts › a code is useless without its verifier, and an attempt uses it up',
  },
  {
    file: 'src/sign-in/return-to.ts',
    from: '/^\\/[/\\\\]/.test(url.pathname)',
    to: 'false',
    caughtBy: 'test/rfc-9700.test.ts › return_to="/.//evil.example" is refused',
  },
  {
    file: 'src/store/sweep.ts',
    from: "where is_staged and state = 'queued' and (lease_until is null or lease_until < now())",
    to: "where state = 'queued'",
    caughtBy:
      'test/import-lease.test.ts › prevents the sweep from queueing the import again until the lease expires',
  },
  {
    file: 'src/web/follow.ts',
    from: '    cursor = message.page.cursor;\n',
    to: '    cursor ??= message.page.cursor;\n',
    caughtBy: 'test/page-live.test.ts › are applied from the responses to polls: nothing is read again',
  },
  {
    file: 'src/web/follow.ts',
    from: '      stopping.abort();\n',
    to: '',
    caughtBy: 'test/page-live.test.ts › stop their poll while the page is in the back/forward cache',
  },
  {
    file: 'src/web/tags-panel.ts',
    from: ' || (sinceMs < readMs && page.bookmarks.length + page.deleted.length > 0)',
    to: '',
    caughtBy:
      'test/page-live.test.ts › leave the counts of tags right if these already counted a new bookmark',
  },
  {
    file: 'src/web/trash-screen.ts',
    from: 'if (shown.length === 0 && cursor !== undefined) await ask(readMore);',
    to: '',
    caughtBy: 'test/page-bookmarks.test.ts › is read page by page',
  },
  {
    file: 'src/web/search-text.ts',
    from: '!isNegated && sameName(value, name),',
    to: '!isNegated && value === name,',
    caughtBy:
      'test/search-text.test.ts › toggling a tag removes it if the search contains it, in any case, and otherwise adds it',
  },
  {
    file: 'k8s/rotate.sh',
    from: 'select count(pg_terminate_backend(pid)) from',
    to: 'select count(pid) from',
    caughtBy:
      'test/long/k8s-rotate.test.ts › a rotation changes the role while the service always works, and disables the old one',
  },
];
