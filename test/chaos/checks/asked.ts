import { LASTING_TAGS, PASSING_PREFIX } from '../users.ts';
import type { Story } from './births.ts';
import type { Result } from './findings.ts';

/**
 * Checks that each bookmark that is in a response or in the database was requested by its user, and that the request
 * was not refused. Also checks that no request created a bookmark twice, however often the request was sent.
 */
export function checkAsked(story: Story): Result {
  const { journal, rest } = story.evidence;
  const findings: string[] = [];
  for (const { id, user, url, call } of story.births.values()) {
    if (call === undefined || call.user !== user) findings.push(`nobody asked for ${id} (${url}) of ${user}`);
    else if (call.outcome === 'refused' && !story.repeats.has(url))
      findings.push(`${id} (${url}) is there, but its ${call.kind} was refused: ${call.code}`);
  }
  for (const [url, ids] of story.idsByUrl) {
    const allowed = 1 + (story.repeats.get(url) ?? 0);
    if (ids.size > allowed) findings.push(`${url} came to be ${ids.size} times: ${[...ids].join(', ')}`);
  }
  for (const { id, tags } of rest.rows) {
    const strange = tags.filter((tag) => !LASTING_TAGS.includes(tag) && !tag.startsWith(PASSING_PREFIX));
    if (strange.length > 0) findings.push(`bookmark ${id} carries ${strange.join(', ')}, which nobody named`);
  }
  const unknown = journal.calls.filter((call) => call.kind === 'add' && call.outcome === 'unknown');
  const happened = unknown.filter((call) => call.kind === 'add' && story.idsByUrl.has(call.url));
  const repeated = journal.calls.filter(({ attempts }) => attempts > 1);
  return {
    point: 'asked',
    counts: {
      shown: story.births.size,
      'unknown adds': unknown.length,
      'of them there': happened.length,
      'sent again': repeated.length,
      'done when sent again': repeated.filter(({ outcome }) => outcome === 'done').length,
    },
    findings,
  };
}
