/**
 * Patterns of a `User-Agent`, each with the program that it matches. The first match wins. The order matters, because
 * most browsers also name other browsers that they are compatible with.
 */
const PROGRAMS: readonly [RegExp, string][] = [
  [/^bookmarks-cli\//, 'Bookmarks CLI'],
  [/^curl\//, 'curl'],
  [/^Wget\//i, 'Wget'],
  [/^HTTPie\//, 'HTTPie'],
  [/^python-|^Python\//, 'Python'],
  [/^node$|^undici$|^Node\.js\//, 'Node.js'],
  [/^Go-http-client\//, 'Go'],
  [/^okhttp\//, 'Android app'],
  [/CFNetwork\//, 'Apple app'],
  [/\bEdg(e|A|iOS)?\//, 'Edge'],
  [/\b(OPR|OPiOS|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|Chromium|HeadlessChrome|CriOS)\//, 'Chrome'],
  [/\bVersion\/\S+ .*\bSafari\//, 'Safari'],
];

/**
 * Patterns of a `User-Agent`, each with its system. The order matters, because Android devices also name Linux, and
 * iPhones also name Mac OS X.
 */
const SYSTEMS: readonly [RegExp, string][] = [
  [/\b(iPhone|iPod)\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\b(Macintosh|Mac OS X|Darwin)\b/i, 'macOS'],
  [/\bLinux\b/i, 'Linux'],
];

/** Only this many characters of a `User-Agent` are examined, so that the search for a name takes little time. */
const MAX_EXAMINED_LENGTH = 512;

/**
 * Returns a short name for the program behind a `User-Agent`, for example `Firefox on Linux` or `curl`; null if
 * unknown. The name consists only of the texts above, so nothing else of the header is stored.
 */
export function nameClient(userAgent: string | undefined): string | null {
  const agent = (userAgent ?? '').slice(0, MAX_EXAMINED_LENGTH);
  const findName = (list: readonly [RegExp, string][]) => list.find(([pattern]) => pattern.test(agent))?.[1];
  const program = findName(PROGRAMS);
  const system = findName(SYSTEMS);
  if (program && system) return `${program} on ${system}`;
  return program ?? system ?? null;
}
