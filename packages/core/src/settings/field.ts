import type { Shape } from './shape.ts';

/**
 * One row of a settings table. From a list of rows derive: argv parsing, environment, file keys, merge with provenance,
 * help, completion, JSON Schema and reference docs. See docs/architecture.md, "Settings".
 */
export type FieldKind =
  | 'string'
  | 'int'
  | 'float'
  | 'bool'
  /** Go notation (`30s`, `1m`, `2m30s`); value in milliseconds. */
  | 'duration'
  /** Comma-separated and repeatable; value string[]. */
  | 'strings'
  /** Repeatable, never split; value string[]. */
  | 'list'
  /** Repeatable `key=value`, split at the first `=`; value Record<string, string>. */
  | 'pairs'
  /** One of `choices`. */
  | 'choice'
  /** A file path, kept as given. */
  | 'path'
  /** A path to a JSON document. */
  | 'json-file'
  /** Any JSON, or what `stored` says; only in files. */
  | 'json';

export type FieldValue = string | number | boolean | readonly string[] | Readonly<Record<string, unknown>>;

export interface Field {
  /** camelCase name the program uses. */
  readonly name: string;
  readonly kind: FieldKind;
  /** Without dashes; absent for settings of files and environment only. */
  readonly flag?: string;
  /** One letter. */
  readonly short?: string;
  /** Environment variable name. */
  readonly env?: string;
  /** A variable that cannot be read is told, and counts as unset, instead of an error. */
  readonly lenient?: true;
  /** Key in files, dotted where nested (`oidc_config.issuer`); absent when never stored. */
  readonly key?: string;
  /** Another tool's word for the key, taken from its files. */
  readonly alias?: string;
  /** How a file holds the value, where kind and default do not say it; see `storedShape`. */
  readonly stored?: Shape<unknown>;
  /** A stored file leaves it out while it is the default. */
  readonly sparse?: true;
  /** The value belongs to this machine: stored here, never exported. */
  readonly local?: true;
  /** Heading under which help lists it. */
  readonly group: string;
  /** One line of help, no full stop. */
  readonly brief: string;
  /** Placeholder in help, for example `hostPort:containerPort`. */
  readonly placeholder?: string;
  readonly default?: FieldValue;
  /** Some flag or variable must give it. */
  readonly required?: true;
  /** A computed default as documented: `generated from the image`. */
  readonly defaultText?: string;
  readonly choices?: readonly string[];
  /** What completion offers where there are no `choices`: words, or what one of the program's offers finds. */
  readonly offers?: string | readonly string[];
  /** Those of a later release: giving one fails with `usage/not-available`. */
  readonly notYetValues?: readonly string[];
  /** Inclusive range for int and float (duration: milliseconds). */
  readonly min?: number;
  readonly max?: number;
  /** The value is a secret: never printed, logged, stored or exported. */
  readonly secret?: boolean;
  /** Why not to use it any more; printed as a warning when given. */
  readonly deprecated?: string;
  /** Names of fields that must be given as well. */
  readonly needs?: readonly string[];
  /** Names of fields that the same place (flags, environment or file) must not give as well. */
  readonly excludes?: readonly string[];
  /**
   * Behaviour arrives with a later release: giving the flag or key fails with `usage/not-available`, unless the value is
   * what happens anyway (`holdsAnyway`). Its environment variable is not read: it may be set for good, and alone it
   * switches nothing on. A row that is delivered in a group that waits says `false`.
   */
  readonly notYet?: boolean;
  /** With `notYet`: an imported file may have the key, running without it harms nobody. */
  readonly harmless?: true;
}

export type Origin = 'flag' | 'env' | 'file' | 'default' | 'registry' | 'config';

/** A value and where it came from, so that messages can name the flag, variable or file. */
export interface Setting {
  readonly value: FieldValue;
  readonly origin: Origin;
  /** The file with its line, or the catalogue entry; the row names flag and variable. */
  readonly place?: string;
  /** What weaker places said, the strongest first. */
  readonly over?: readonly Setting[];
}

/** By field name; a field that nobody set is absent. */
export type Settings = ReadonlyMap<string, Setting>;
