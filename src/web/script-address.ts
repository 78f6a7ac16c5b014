/** Restricts which addresses may be loaded as code: only the page's own workers. */

interface TrustedRules {
  createScriptURL(text: string): string;
}

declare global {
  /** Some browsers lack this API, and TypeScript does not declare it. */
  var trustedTypes: { createPolicy(name: string, rules: TrustedRules): TrustedRules } | undefined;
}

const WORKERS = new Set([
  '/service-worker.js',
  new URL('./settings/transfer-worker.ts', import.meta.url).pathname,
]);

const checkAddress = (address: string): string => {
  const { origin, pathname } = new URL(address, location.origin);
  if (origin !== location.origin || !WORKERS.has(pathname)) throw new TypeError('no worker of this page');
  return address;
};

const policy = globalThis.trustedTypes?.createPolicy('worker', { createScriptURL: checkAddress });

/** Returns the address of a worker in the form that the page's security policy requires. */
export const scriptAddress = (address: string): string =>
  policy?.createScriptURL(address) ?? checkAddress(address);
