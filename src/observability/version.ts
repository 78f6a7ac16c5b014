import { readFileSync } from 'node:fs';

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

/** The version of this service, as package.json has it. */
export const VERSION = version;
