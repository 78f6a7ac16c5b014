import type { Config } from '../config.ts';

/**
 * The longest times that requests may take, in seconds, for the requests that may take longer than others. Gateways and
 * clients must not cut them off earlier.
 */

/** A held poll. */
export const longestPoll = ({ syncWaitSeconds }: Config): number => syncWaitSeconds;

/** An export of the largest account to a slow client. The service itself sets no limit. */
export const longestExport = (): number => 3_600;

/**
 * The seconds that a client should wait in addition. A poll also reads before and after the hold, an import may have to
 * be cancelled, and networks are slow.
 */
export const CLIENT_MARGIN_SECONDS = 30;
