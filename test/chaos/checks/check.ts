import type { Evidence } from '../journal.ts';
import { checkAdded } from './added.ts';
import { checkAsked } from './asked.ts';
import { tellStory } from './births.ts';
import type { Result } from './findings.ts';
import { checkFollowed } from './followed.ts';
import { checkImported } from './imported.ts';
import { checkCapped, checkLimited } from './limited.ts';
import { checkAnswered, checkLived, checkRested } from './lived.ts';
import { checkLooked } from './looked.ts';
import { checkWoken } from './woken.ts';

const CHECKS = [
  checkAdded,
  checkFollowed,
  checkWoken,
  checkAsked,
  checkImported,
  checkLooked,
  checkCapped,
  checkLimited,
  checkAnswered,
  checkLived,
  checkRested,
];

/** Proves what a run must show from its evidence alone; a pure function. */
export function checkAll(evidence: Evidence): Result[] {
  const story = tellStory(evidence);
  return CHECKS.map((check) => check(story));
}
