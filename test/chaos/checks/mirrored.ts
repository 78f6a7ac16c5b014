import type { Bookmark, BookmarkTag } from '../../../src/client/index.ts';
import type { Collection, Mirror } from '../journal.ts';
import type { Story } from './births.ts';
import type { Result } from './findings.ts';

/** Checks that the copy in every mirror is exactly equal to the rows of the mirror's user in the database. */
export function checkMirrored({ evidence }: Story): Result {
  const { mirrors } = evidence.journal;
  const { collections } = evidence.rest;
  const sum = (count: (mirror: Mirror) => number) => mirrors.reduce((total, each) => total + count(each), 0);
  return {
    point: 'mirrored',
    counts: {
      mirrors: mirrors.length,
      pages: sum(({ pages }) => pages),
      resets: sum(({ resets }) => resets),
      restarts: sum(({ restarts }) => restarts),
      bookmarks: sum(({ copy }) => copy?.bookmarks.length ?? 0),
      tags: sum(({ copy }) => copy?.tags.length ?? 0),
    },
    findings: mirrors.flatMap((mirror) =>
      mirror.copy === undefined
        ? [`${mirror.name} could not catch up`]
        : findDifferences(mirror.name, mirror.copy, collections.get(mirror.user) ?? NOTHING),
    ),
  };
}

const NOTHING: Collection = { bookmarks: [], tags: [] };

const findDifferences = (name: string, copy: Collection, truth: Collection): string[] => [
  ...compare(`${name}: bookmark`, copy.bookmarks, truth.bookmarks),
  ...compare(`${name}: tag`, copy.tags, truth.tags),
];

/** Compares the items by id. If all are equal, also compares their order, which must be the same too. */
function compare<T extends Bookmark | BookmarkTag>(
  name: string,
  held: readonly T[],
  right: readonly T[],
): string[] {
  const rightById = new Map(right.map((each) => [each.id, each]));
  const heldIds = new Set(held.map(({ id }) => id));
  const findings = right.filter(({ id }) => !heldIds.has(id)).map(({ id }) => `${name} ${id} is missing`);
  for (const each of held) {
    const other = rightById.get(each.id);
    if (other === undefined) findings.push(`${name} ${each.id} is held and gone from the database`);
    else findings.push(...compareFields(`${name} ${each.id}`, each, other));
  }
  const isSame = findings.length > 0 || JSON.stringify(held) === JSON.stringify(right);
  return isSame ? findings : [`${name}s are out of order`];
}

function compareFields<T extends object>(name: string, held: T, right: T): string[] {
  const fields = Object.keys(right) as (keyof T & string)[];
  return fields
    .filter((field) => JSON.stringify(held[field]) !== JSON.stringify(right[field]))
    .map(
      (field) =>
        `${name} has another ${field}: ${JSON.stringify(held[field])}, not ${JSON.stringify(right[field])}`,
    );
}
