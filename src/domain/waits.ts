/**
 * The default values of `REQUEST_TIMEOUT_SECONDS` and `IMPORT_WAIT_SECONDS`. The client expects them too, because it does
 * not know the settings of its service.
 */
export const DEFAULT_WAITS = { requestTimeoutSeconds: 120, importWaitSeconds: 120 };

/** The longest time that an import may take, in seconds: its body arrives, it waits for its turn, and it runs. */
export const longestImport = ({ requestTimeoutSeconds, importWaitSeconds }: typeof DEFAULT_WAITS): number =>
  requestTimeoutSeconds + 2 * importWaitSeconds;
