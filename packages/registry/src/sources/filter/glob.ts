import { SkepError } from '@skep/core/errors/skep-error.ts';

export type NameMatcher = (name: string) => boolean;

const MAX_LENGTH = 1_000;

/**
 * Name patterns of a source's filter (docs/behaviour/registry.md#sources): `*` is any text, `/` included; `?` one
 * character; `[a-z]` and `[!a-z]` (also `[^a-z]`) one character of a class; `{a,b}` either; `\` takes the next
 * character as it is. Patterns are compared with the whole name, letter case included. Fails with `config/invalid`, naming
 * the pattern and what is wrong with it.
 */
export function compileGlob(pattern: string): NameMatcher {
  const part = inSequence(new GlobReader(pattern).read());
  return (name) => {
    const chars = Array.from(name);
    return part(chars, new Set([0])).has(chars.length);
  };
}

/**
 * The places in the name where a match can end that begins at one of `starts`. All possibilities are followed at once, so
 * the work is at most pattern length × name length: no pattern makes it explode, as backtracking would.
 */
type Part = (name: readonly string[], starts: ReadonlySet<number>) => ReadonlySet<number>;

const anyText: Part = (name, starts) => {
  const first = Math.min(...starts);
  return new Set(Array.from({ length: name.length - first + 1 }, (_, index) => first + index));
};

function oneCharacter(admits: (char: string) => boolean): Part {
  return (name, starts) => {
    const admitted = [...starts].filter((at) => at < name.length && admits(name[at] ?? ''));
    return new Set(admitted.map((at) => at + 1));
  };
}

function inSequence(parts: readonly Part[]): Part {
  return (name, starts) => parts.reduce((at, part) => (at.size === 0 ? at : part(name, at)), starts);
}

function oneOf(choices: readonly Part[]): Part {
  return (name, starts) => new Set(choices.flatMap((choice) => [...choice(name, starts)]));
}

/** Reads a pattern once, from left to right. */
class GlobReader {
  readonly #pattern: string;
  readonly #chars: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#chars = Array.from(pattern);
  }

  read(): readonly Part[] {
    if (this.#pattern === '') throw this.#fault('is empty');
    if (this.#chars.length > MAX_LENGTH) throw this.#fault(`is longer than ${MAX_LENGTH} characters`);
    const parts = this.#sequence(false);
    if (this.#at < this.#chars.length) throw this.#fault('has a "}" without "{"');
    return parts;
  }

  /** Up to the end, a `}`, or within braces a `,`; the delimiter is left to the caller. */
  #sequence(inBraces: boolean): readonly Part[] {
    const parts: Part[] = [];
    for (; this.#at < this.#chars.length;) {
      const char = this.#chars[this.#at] ?? '';
      if (char === '}' || (inBraces && char === ',')) break;
      this.#at += 1;
      // A second star adds nothing but work.
      if (char === '*' && parts.at(-1) === anyText) continue;
      parts.push(this.#part(char));
    }
    return parts;
  }

  #part(char: string): Part {
    switch (char) {
      case '*':
        return anyText;
      case '?':
        return oneCharacter(() => true);
      case '[':
        return oneCharacter(this.#class());
      case '{':
        return oneOf(this.#choices());
      case '\\': {
        const literal = this.#next('ends with a "\\"');
        return oneCharacter((other) => other === literal);
      }
      default:
        return oneCharacter((other) => other === char);
    }
  }

  /** After `{`. */
  #choices(): readonly Part[] {
    const choices: Part[] = [];
    for (;;) {
      choices.push(inSequence(this.#sequence(true)));
      if (this.#next('has a "{" without "}"') === '}') return choices;
    }
  }

  /** After `[`. */
  #class(): (char: string) => boolean {
    const negated = this.#chars[this.#at] === '!' || this.#chars[this.#at] === '^';
    if (negated) this.#at += 1;
    const ranges: (readonly [number, number])[] = [];
    for (;;) {
      const first = this.#classMember();
      if (first === ']') break;
      const from = codeOf(first);
      const isRange = this.#chars[this.#at] === '-' && this.#chars[this.#at + 1] !== ']';
      if (isRange) this.#at += 1;
      const to = isRange ? codeOf(this.#classMember()) : from;
      if (to < from) throw this.#fault('has a class with a reversed range');
      ranges.push([from, to]);
    }
    if (ranges.length === 0) throw this.#fault('has an empty class "[]"');
    return (char) => {
      const code = codeOf(char);
      return negated !== ranges.some(([from, to]) => from <= code && code <= to);
    };
  }

  /** One character of a class; a plain `]` is its end, an escaped one comes back with its backslash. */
  #classMember(): string {
    const char = this.#next('has a "[" without "]"');
    return char === '\\' ? `\\${this.#next('has a "[" without "]"')}` : char;
  }

  #next(otherwise: string): string {
    const char = this.#chars[this.#at];
    if (char === undefined) throw this.#fault(otherwise);
    this.#at += 1;
    return char;
  }

  #fault(what: string): SkepError {
    return new SkepError('config/invalid', {
      message: `the pattern "${this.#pattern.slice(0, 100)}" ${what}`,
      hint: 'write * for any text, ? for one character, [a-z] for a class, {a,b} for either, \\ before a plain one of these',
    });
  }
}

/** Of a character, or of an escaped one. */
function codeOf(char: string): number {
  return (char.length > 1 && char.startsWith('\\') ? char.slice(1) : char).codePointAt(0) ?? -1;
}
