import { randomInt } from 'node:crypto';
import { foldText } from '../domain/text.ts';
import { createInvite } from '../store/admin.ts';
import type { Database } from '../store/driver/database.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

const drawCode = (): string => Array.from({ length: 8 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');

/**
 * Creates an invite for an e-mail address. The invite works once and expires after `days` days (docs/contract.md,
 * decision 22). If the random code is in use, tries another one.
 */
export async function issueInvite(db: Database, email: string, days: number) {
  for (;;) {
    const invite = await createInvite(db, drawCode(), email, foldText(email), days);
    if (invite !== undefined) return invite;
  }
}
