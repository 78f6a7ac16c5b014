import { z } from 'zod';
import { ConfigError, readConfig } from '../../src/config.ts';
import { STATUS_BY_CODE } from '../../src/http/error-responses.ts';
import { METRIC_NAMES } from '../../src/observability/metrics.ts';
import { ROUTES } from '../../src/routes/app.ts';
import { type Markdown, tableOf } from './markdown.ts';
import { listAdminCommands, listVariables } from './project.ts';
import { spansIn } from './references.ts';

/** Checks that the documents' tables are complete. Each check returns the differences. */

/** Compares what is documented with what exists. Returns the entries that only one of the two has. */
export function listDifferences(
  what: string,
  documented: Iterable<string>,
  actual: Iterable<string>,
): string[] {
  const [left, right] = [new Set(documented), new Set(actual)];
  return [
    ...[...left.difference(right)].map((name) => `${what}: ${name} is documented and does not exist`),
    ...[...right.difference(left)].map((name) => `${what}: ${name} is not documented`),
  ];
}

const UNITS: Record<string, number> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Writes numbers such as `12,000` and `4 GiB` in digits only. Does not change other text. */
function plainNumber(text: string): string {
  const [, digits, unit] = /^([\d,]+)(?: (\w+))?$/.exec(text) ?? [];
  return digits === undefined ? text : String(Number(digits.replaceAll(',', '')) * (UNITS[unit ?? ''] ?? 1));
}

/** Returns the range and the example that the error message about an invalid value of this variable states. */
function ruleOf(variable: string): { range: string | undefined; example: string | undefined } {
  try {
    readConfig({ [variable]: '\u0001' });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [, least, most] = /expected an integer from (\d+) to (\d+)/.exec(error.message) ?? [];
    const example = /for example \w+=(.*)$/.exec(error.message)?.[1];
    return { range: least && `${least} to ${most}`, example };
  }
  return { range: undefined, example: undefined };
}

/** Checks that the configuration tables list every variable with its default, and with the range of each integer. */
export function findConfigurationFaults(configuration: Markdown): string[] {
  const rows = tableOf(configuration, '| variable |').map(([name, ...rest]) => [spansIn(name)[0]!, ...rest]);
  return [
    ...listDifferences(
      'configuration',
      rows.map(([name]) => name!),
      listVariables(),
    ),
    ...rows.flatMap(([name, byDefault, range]) => {
      const rule = ruleOf(name!);
      if (rule.range === undefined) return [];
      const [least, most] = range!.split(' to ').map(plainNumber);
      // A default that is `none` or depends on another variable is not compared.
      const isDefault = /^none$|`[A-Z_]+`/.test(byDefault!) || plainNumber(byDefault!) === rule.example;
      return [
        ...(rule.range === `${least} to ${most}`
          ? []
          : [`${name}: its range is ${rule.range}, not ${range}`]),
        ...(isDefault ? [] : [`${name}: its default is ${rule.example}, not ${byDefault}`]),
      ];
    }),
  ];
}

const fieldsOf = (schema: z.ZodType): string[] => {
  if (schema instanceof z.ZodUnion) return [...new Set((schema.options as z.ZodType[]).flatMap(fieldsOf))];
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
};

/** Checks that "The API at a glance" lists exactly the endpoints, each with its scope and fields. */
export function findEndpointFaults(contract: Markdown): string[] {
  const documented = tableOf(contract, '| endpoint | scope |').map(
    ([path, scope, takes, returns]) =>
      `${spansIn(path)[0]} ${scope} (${spansIn(takes)}) → (${spansIn(returns)})`,
  );
  const there = ROUTES.map(
    ({ path, scope, body, response }) => `${path} ${scope} (${fieldsOf(body)}) → (${fieldsOf(response)})`,
  );
  return listDifferences('API at a glance', documented, there);
}

/** Checks that the contract describes each endpoint with its scope, and no other endpoints. */
export function findContractEndpointFaults(contract: Markdown): string[] {
  const documented = [...contract.text.matchAll(/^#### POST (\/[\w/-]+) \((\w+)\)/gm)];
  return listDifferences(
    'endpoints of the contract',
    documented.map(([, path, scope]) => `${path} ${scope}`),
    ROUTES.map(({ path, scope }) => `${path} ${scope}`),
  );
}

/** Checks that the contract lists the error codes with their statuses. */
export function findErrorFaults(contract: Markdown): string[] {
  return listDifferences(
    'errors',
    tableOf(contract, '| code | status |').map(([code, status]) => `${spansIn(code)[0]} ${status}`),
    Object.entries(STATUS_BY_CODE).map(([code, status]) => `${code} ${status}`),
  );
}

/** Checks that docs/operation.md names each of the operator's commands, and no other ones. */
export function findAdminTableFaults(operation: Markdown): string[] {
  const commands = operation.blocks
    .flatMap(({ spans }) => spans)
    .flatMap((span) => /^admin ([a-z]+ [a-z]+)/.exec(span)?.[1] ?? []);
  return listDifferences('admin commands', commands, listAdminCommands().keys());
}

/** Checks that the table of metrics lists each metric. */
export const findMetricTableFaults = (document: Markdown): string[] =>
  listDifferences(
    'metrics',
    tableOf(document, '| metric |').flatMap(([names]) => spansIn(names)),
    METRIC_NAMES,
  );

const LONGEST_README = 179;
const LONGEST_PARAGRAPH = 5;

/** Checks that the README is short. */
export function findLengthFaults(readme: Markdown): string[] {
  return [
    ...(readme.lineCount <= LONGEST_README ? [] : [`README.md has ${readme.lineCount} lines`]),
    ...readme.blocks
      .filter(({ lines }) => lines.length > LONGEST_PARAGRAPH)
      .map(({ line, lines }) => `README.md:${line}: a paragraph of ${lines.length} lines`),
  ];
}
