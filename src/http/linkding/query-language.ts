import { invalid } from '../../domain/errors.ts';

/**
 * Reads linkding's query language: terms and phrases, `#tag`, `!unread`, `!untagged`, `and`, `or`, `not` and brackets.
 * `not` binds tightest, then `and`, then `or`. Expressions without an operator between them are joined by `and`.
 */

/** A condition on a bookmark that contains no other condition. */
export interface Literal {
  kind: 'text' | 'tag' | 'keyword';
  value: string;
  isNegated: boolean;
}

/** A query as alternatives. A bookmark must meet all literals of at least one alternative. */
export type Alternatives = readonly (readonly Literal[])[];

/** More alternatives than this are refused, because their number doubles with each `or` in brackets. */
const MAX_ALTERNATIVES = 10;

interface Token {
  kind: 'text' | 'tag' | 'keyword' | 'and' | 'or' | 'not' | '(' | ')';
  value: string;
}

/**
 * Matches a token, or white space. A quoted text may contain escaped characters, and ends at the end of the query if
 * its closing quote is missing. A word ends at white space and at characters that begin another token. The name of a tag
 * may contain brackets, such as `#hello(world)`.
 */
const TOKEN =
  /\s+|(?<bracket>[()])|(?<quote>["'])(?<quoted>(?:\\[\s\S]|(?!\k<quote>)[^\\])*)\\?(?:\k<quote>|$)|#(?<tag>(?:[^\s()"']+(?:\([^\s()"']*\)[^\s()"']*)*)?)|!(?<keyword>[^\s()"']*)|(?<word>[^\s()"'#!]+)/gu;

const OPERATORS = ['and', 'or', 'not'] as const;

function* readTokens(query: string): Generator<Token> {
  for (const { groups = {} } of query.matchAll(TOKEN)) {
    const { bracket, quoted, tag, keyword, word } = groups;
    const operator = OPERATORS.find((each) => each === word?.toLowerCase());
    if (bracket === '(' || bracket === ')') yield { kind: bracket, value: bracket };
    else if (operator !== undefined) yield { kind: operator, value: operator };
    else if (tag) yield { kind: 'tag', value: tag };
    else if (keyword) yield { kind: 'keyword', value: keyword.toLowerCase() };
    else if (word !== undefined) yield { kind: 'text', value: word };
    else if (quoted !== undefined) yield { kind: 'text', value: removeEscapes(quoted) };
  }
}

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r' };
const removeEscapes = (text: string): string =>
  text.replace(/\\([\s\S])/gu, (_, escaped: string) => ESCAPES[escaped] ?? escaped);

/** The query that every bookmark meets. */
const ALL: Alternatives = [[]];

/** Throws `VALIDATION_ERROR` for a malformed query, or for one with too many alternatives. */
export function parseQuery(query: string): Alternatives {
  const tokens = [...readTokens(query)];
  if (tokens.length === 0) return ALL;
  let position = 0;
  const next = () => tokens[position]?.kind;
  const take = (kind: Token['kind']): boolean => {
    if (next() !== kind) return false;
    position += 1;
    return true;
  };
  // `not` is applied to the literals: `not (a or b)` is `not a and not b`.
  const readOr = (isNegated: boolean): Alternatives => {
    let result = readAnd(isNegated);
    while (take('or')) result = (isNegated ? both : either)(result, readAnd(isNegated));
    return result;
  };
  const readAnd = (isNegated: boolean): Alternatives => {
    let result = readNot(isNegated);
    while (next() !== undefined && next() !== 'or' && next() !== ')') {
      take('and');
      result = (isNegated ? either : both)(result, readNot(isNegated));
    }
    return result;
  };
  const readNot = (isNegated: boolean): Alternatives => {
    if (take('not')) return readNot(!isNegated);
    if (take('(')) {
      const result = readOr(isNegated);
      if (!take(')')) throw invalid('q: a closing bracket is missing');
      return result;
    }
    const token = tokens[position];
    if (token?.kind !== 'text' && token?.kind !== 'tag' && token?.kind !== 'keyword')
      throw invalid(`q: expected a term ${token === undefined ? 'at the end' : `before ${token.value}`}`);
    position += 1;
    if (token.value.trim() !== '') return [[{ kind: token.kind, value: token.value, isNegated }]];
    // Every bookmark contains an empty text.
    if (isNegated) throw invalid('q: not before an empty text finds nothing');
    return ALL;
  };
  const result = readOr(false);
  if (next() !== undefined) throw invalid('q: a closing bracket has no opening bracket');
  return result;
}

const limited = (alternatives: Alternatives): Alternatives => {
  if (alternatives.length > MAX_ALTERNATIVES)
    throw invalid(`q: has more than ${MAX_ALTERNATIVES} alternatives`);
  return alternatives;
};

const either = (a: Alternatives, b: Alternatives): Alternatives => limited([...a, ...b]);

const both = (a: Alternatives, b: Alternatives): Alternatives =>
  limited(a.flatMap((ofA) => b.map((ofB) => [...ofA, ...ofB])));
