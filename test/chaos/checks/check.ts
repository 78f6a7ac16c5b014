import type { Evidence } from '../journal.ts';
import { checkAdded } from './added.ts';
import { checkAsked } from './asked.ts';
import { type Story, tellStory } from './births.ts';
import type { Point, Result } from './findings.ts';
import { checkFollowed } from './followed.ts';
import { checkImported } from './imported.ts';
import { checkCapped, checkLimited } from './limited.ts';
import { checkAnswered, checkLived, checkRested } from './lived.ts';
import { checkLooked } from './looked.ts';
import { demandMinimum } from './minimums.ts';
import { checkMirrored } from './mirrored.ts';
import { checkUnseen } from './unseen.ts';
import { checkWoken } from './woken.ts';

const CHECKS: Record<Point, (story: Story) => Result> = {
  added: checkAdded,
  followed: checkFollowed,
  mirrored: checkMirrored,
  unseen: checkUnseen,
  woken: checkWoken,
  asked: checkAsked,
  imported: checkImported,
  looked: checkLooked,
  capped: checkCapped,
  limited: checkLimited,
  answered: checkAnswered,
  lived: checkLived,
  rested: checkRested,
};

/**
 * Checks a run by its evidence. For each point, returns the faults, and says which evidence is missing. Has no side
 * effects.
 */
export function checkAll(evidence: Evidence): Result[] {
  const story = tellStory(evidence);
  return Object.values(CHECKS).map((check) => demandMinimum(check(story)));
}

/** Checks one point without requiring a minimum of evidence. */
export const checkPoint = (evidence: Evidence, point: Point): Result => CHECKS[point](tellStory(evidence));
