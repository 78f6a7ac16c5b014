import { ConfigError, readConfig } from '../../src/config.ts';

/** The message with which a configuration is refused. Throws if it is accepted. */
export function messageFor(env: Readonly<Record<string, string>>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error(`${JSON.stringify(env)} is taken`);
}
