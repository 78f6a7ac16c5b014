import type { z } from 'zod';
import { invalid } from './errors.ts';

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Formats a path as text like `tags[2].name`. The text for the whole body is `body`. */
function formatPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text || 'body';
}

/** The names of types in messages, keyed by Zod's names. */
const TYPE_NAMES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
};

/** Describes a broken rule in words. Returns undefined for a rule that has a message of its own. */
export function describeIssue(issue: RawIssue): string | undefined {
  if (issue.code === 'invalid_type') {
    if (issue.input === undefined) return 'is required';
    return `expected ${TYPE_NAMES[issue.expected] ?? issue.expected}`;
  }
  if (issue.code === 'invalid_value')
    return `expected ${issue.values.map((value) => `"${String(value)}"`).join(' or ')}`;
  if (issue.code === 'too_big' && issue.origin === 'array') return `at most ${issue.maximum} entries`;
  if (issue.code === 'too_big') return `at most ${issue.maximum}`;
  if (issue.code === 'too_small') return `at least ${issue.minimum}`;
  return undefined;
}

/** Formats an issue as `field: rule`, for error responses (docs/contract.md, decision 2). */
export const formatIssue = (issue: Issue): string => `${formatPath(issue.path)}: ${issue.message}`;

/**
 * Makes a rule for a body: exactly one of the fields `names` must be present. If several are present, the error names
 * the second of them. If none is present, the error names the first of `names`.
 */
export const exactlyOne =
  <Name extends string>(...names: readonly [Name, Name, ...Name[]]) =>
  ({ value, issues }: z.core.ParsePayload<{ readonly [Each in Name]?: unknown }>): void => {
    const present = names.filter((name) => value[name] !== undefined);
    if (present.length === 1) return;
    const path = [present[1] ?? names[0]];
    const message = `expected either ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
    issues.push({ code: 'custom', message, path, input: value });
  };

/** Makes a rule for a body: if the field `name` is present, none of the fields `others` may be present. */
export const notCombined =
  <Name extends string>(name: Name, others: readonly Name[]) =>
  ({ value, issues }: z.core.ParsePayload<{ readonly [Each in Name]?: unknown }>): void => {
    if (value[name] === undefined) return;
    const other = others.find((each) => value[each] !== undefined);
    if (other === undefined) return;
    issues.push({ code: 'custom', message: `cannot be given with ${name}`, path: [other], input: value });
  };

/**
 * The fields in which `null` does not mean absent. In `expires_in_days`, it is a value. In `if_updated_at`, it is an
 * error, because the write would otherwise become unconditional.
 */
const KEPT_NULLS: ReadonlySet<string> = new Set(['expires_in_days', 'if_updated_at']);

/**
 * Returns an object without its fields that are `null`, because `null` in an optional field means absent
 * (docs/contract.md, decision 4). Returns anything else unchanged.
 */
export function dropNulls(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const fields = Object.entries(body);
  const kept = fields.filter(([name, value]) => value !== null || KEPT_NULLS.has(name));
  return kept.length === fields.length ? body : Object.fromEntries(kept);
}

/** Checks a request body. Throws `VALIDATION_ERROR` with the first wrong field and the broken rule. */
export function parseBody<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const result = schema.safeParse(dropNulls(body), { error: describeIssue });
  if (result.success) return result.data;
  throw invalid(formatIssue(result.error.issues[0]!));
}
