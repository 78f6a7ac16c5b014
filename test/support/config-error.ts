import { ConfigError, readConfig } from '../../src/config.ts';

/** Returns the message with which the service refuses a configuration. Throws if the service accepts it. */
export function messageFor(env: Readonly<Record<string, string>>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error(`${JSON.stringify(env)} is taken`);
}
