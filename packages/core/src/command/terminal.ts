/** Where a command speaks: data to `out`, talk to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** A person can be asked: standard input and standard error are terminals. */
  readonly interactive: boolean;
  /** Standard error is a terminal: lines may be rewritten. */
  readonly liveErr: boolean;
  /** Standard output is a terminal: what servers wrote must not reach it as it is. */
  readonly liveOut: boolean;
  readonly colorOut: boolean;
  readonly colorErr: boolean;
  /** Columns. */
  readonly width: number;
  /** Columns of standard output; Infinity where that is no terminal, so that nothing is cut. */
  readonly widthOut: number;
}

export interface StreamLike {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): boolean;
}

export interface TerminalInput {
  readonly stdin: { readonly isTTY?: boolean };
  readonly stdout: StreamLike;
  readonly stderr: StreamLike;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const DEFAULT_WIDTH = 100;

/** Colour only on a terminal, never with NO_COLOR (no-color.org) or TERM=dumb. */
export function openTerminal({ stdin, stdout, stderr, env }: TerminalInput): Terminal {
  const mayColor = (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    interactive: stderr.isTTY === true && stdin.isTTY === true,
    liveErr: stderr.isTTY === true && env['TERM'] !== 'dumb',
    liveOut: stdout.isTTY === true,
    colorOut: stdout.isTTY === true && mayColor,
    colorErr: stderr.isTTY === true && mayColor,
    width: Math.min(stderr.columns || stdout.columns || DEFAULT_WIDTH, 140),
    // A terminal that tells no size says 0.
    widthOut: stdout.isTTY === true ? stdout.columns || DEFAULT_WIDTH : Infinity,
  };
}
