const FACTORS: Record<string, number> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

/** Reads a Kubernetes quantity (`250m`, `1Gi`) as a number. Throws if it is invalid. */
export function readQuantity(text: string | number): number {
  const [, digits, suffix = ''] = /^([\d.]+)([a-zA-Z]*)$/.exec(String(text)) ?? [];
  const factor = FACTORS[suffix];
  if (digits === undefined || factor === undefined) throw new Error(`${text} is not a quantity`);
  return Number(digits) * factor;
}

/** Reads a duration of the Gateway API (`1h`, `1m30s`, `500ms`) in seconds. Throws if it is invalid. */
export function readDurationSeconds(text: string): number {
  if (!/^(\d{1,5}(h|ms|m|s)){1,4}$/.test(text)) throw new Error(`${text} is not a duration`);
  const seconds: Record<string, number> = { h: 3_600, m: 60, s: 1, ms: 1e-3 };
  const parts = [...text.matchAll(/(\d+)(h|ms|m|s)/g)];
  return parts.reduce((sum, [, digits, unit]) => sum + Number(digits) * seconds[unit!]!, 0);
}
