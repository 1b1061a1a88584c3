import { isMap, isPair, isScalar, LineCounter, parseDocument, type Document } from 'yaml';
import type { ConfigPath, Problem } from './problem.ts';

/** Line and column, counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A problem of the text itself, before anything has a path. */
export interface SyntaxProblem extends Place {
  readonly message: string;
}

export interface YamlText {
  /** Plain data; member names keep their case. */
  readonly value: unknown;
  /** Where a problem stands in the text, or where its nearest parent does when it is about something missing. */
  locate(problem: Pick<Problem, 'path' | 'at'>): Place;
}

// Real configurations repeat an anchor a handful of times; a "billion laughs" file needs far more.
const MAX_ALIASES = 100;

/** Reads YAML 1.2 (and so JSON). Duplicate keys, unknown tags and alias bombs are problems, not warnings. */
export function readYaml(text: string): YamlText | { readonly problems: readonly SyntaxProblem[] } {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, uniqueKeys: true });
  const place = (offset: number): Place => {
    const { line, col } = counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    return {
      problems: faults.map(({ message, pos }) => ({ ...place(pos[0]), message: firstSentence(message) })),
    };
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    return { value, locate: (problem) => place(offsetOf(document, problem)) };
  } catch (error) {
    // The library counts aliases only while it expands them, and says so with a ReferenceError.
    if (error instanceof ReferenceError)
      return { problems: [{ line: 1, column: 1, message: error.message }] };
    throw error;
  }
}

function firstSentence(message: string): string {
  return message.split('\n', 1)[0]?.replace(/:$/, '') ?? message;
}

function offsetOf(document: Document, { path, at }: Pick<Problem, 'path' | 'at'>): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const offset = exactOffset(document, path.slice(0, length), length === path.length ? at : undefined);
    if (offset !== undefined) return offset;
  }
  return 0;
}

function exactOffset(document: Document, path: ConfigPath, at: Problem['at']): number | undefined {
  if (at === 'key') {
    const parent: unknown = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    const pair = isMap(parent)
      ? parent.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === path.at(-1))
      : undefined;
    return isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
  }
  const node: unknown = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNodeWithRange(node) ? node.range[0] : undefined;
}

function isNodeWithRange(node: unknown): node is { readonly range: readonly [number, number, number] } {
  return typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range);
}
