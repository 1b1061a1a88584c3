import type { Clock } from '@skep/core/time/clock.ts';
import type { z } from 'zod';
import { checkShape } from '../shape/check-shape.ts';
import { type Draft, draftOf } from '../shape/draft.ts';
import type { Limits } from '../shape/limits.ts';
import { type ConfigPath, type Problem, problemsText } from '../shape/problem.ts';
import type { SyncStatus } from '../store/rows.ts';
import type { OpenClient } from './open-client.ts';
import type { Source } from './source.ts';
import type { WatchedSource } from './watched-source.ts';

/** Where a source stands: some things may be said only in one of the two places. */
export type SourceOrigin = 'file' | 'api';

/** `format` of a source: which shapes of catalogue it may hold; absent means any. */
export type SourceFormat = 'toolhive' | 'upstream';

/** What sources need of the program and the machine. */
export interface SourceSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where temporary folders are made. */
  readonly tempDir: string;
  readonly clock: Clock;
  /** `skep-registry/<version>`. */
  readonly userAgent: string;
  readonly limits: Limits;
  /** What the last synchronisation left in the store. */
  readonly before?: SyncStatus;
}

/** What a source that is watched needs. */
export interface WatchSurroundings extends Pick<
  SourceSurroundings,
  'env' | 'clock' | 'userAgent' | 'limits'
> {
  /** At least 0, below 1. */
  readonly random: () => number;
}

/** The surroundings of one source, with what it may reach as one made by the operator or through the API. */
export interface Opening extends SourceSurroundings {
  readonly name: string;
  /** Whether it may be at private, loopback and link-local addresses. */
  readonly allowPrivate: boolean;
  /** Folders in which its files must lie; absent means anywhere. */
  readonly folders: readonly string[] | undefined;
  readonly client: OpenClient;
}

/** What the rest of the program asks about the settings of one source. */
export interface SourceFacts {
  /** Which of several forms its kind has; a source cannot be turned from one into another. */
  readonly form?: string;
  /** Files of this machine that it reads. */
  readonly files?: readonly string[];
  /** It is read in no time, and there when the machine is. */
  readonly isLocal?: boolean;
  /** A catalogue that stands in the settings themselves. */
  readonly data?: string;
  /** Why it must not be made through the API. */
  readonly apiFault?: string;
}

/** One kind of source as its folder declares it. */
interface SourceKindParts<Shape extends z.ZodObject> {
  /** The members of its block. */
  readonly shape: Shape;
  /** For the reference page. */
  readonly brief: string;
  /** The formats that it may say; absent: all. */
  readonly formats?: readonly SourceFormat[];
  /** A list of another registry may be empty; a file without entries is a mistake. */
  readonly mayBeEmpty?: true;
  /** Members that are paths, which start at the folder of the configuration. */
  readonly relativePaths?: readonly string[];
  /** Members of which exactly one has to be there. */
  readonly exactlyOne?: readonly string[];
  /** Whether it is read once and never again, so that it has no interval. */
  readonly isReadOnce?: (block: Draft<z.input<Shape>>) => boolean;
  /** Rules between its members, as far as they can be read. */
  readonly problems?: (
    block: Draft<z.input<Shape>>,
    path: ConfigPath,
    origin: SourceOrigin,
  ) => Iterable<Problem>;
  readonly facts?: (settings: z.output<Shape>) => SourceFacts;
  /** A kind is opened, watched, or neither. */
  readonly open?: (settings: z.output<Shape>, opening: Opening) => Source;
  readonly watch?: (settings: z.output<Shape>, surroundings: WatchSurroundings) => WatchedSource;
}

/** The settings of one source, checked: facts, and how it is opened. */
export interface SourcePlace extends SourceFacts {
  readonly open?: (opening: Opening) => Source;
  readonly watch?: (surroundings: WatchSurroundings) => WatchedSource;
}

/** A row of the table of kinds, whatever its settings are. */
export interface SourceKindRow extends Omit<
  SourceKindParts<z.ZodObject>,
  'isReadOnce' | 'problems' | 'facts' | 'open' | 'watch'
> {
  /** The block as it is written, in the order of the shape, so that equal blocks have equal texts. */
  readonly written: (block: unknown) => object;
  readonly isReadOnce: (block: unknown) => boolean;
  readonly problems: (block: unknown, path: ConfigPath, origin: SourceOrigin) => Iterable<Problem>;
  /** Everything about a block that can be told without the source; or what is wrong with it. */
  readonly read: (block: unknown) => SourcePlace | { readonly fault: string };
}

export function sourceKind<Shape extends z.ZodObject>({
  isReadOnce,
  problems,
  facts,
  open,
  watch,
  ...row
}: SourceKindParts<Shape>): SourceKindRow {
  const { shape } = row;
  return {
    ...row,
    written: (block) => ({ ...draftOf(shape, block) }),
    isReadOnce: (block) => {
      const draft = draftOf(shape, block);
      return draft !== undefined && isReadOnce?.(draft) === true;
    },
    problems: (block, path, origin) => {
      const draft = draftOf(shape, block);
      return (draft === undefined ? undefined : problems?.(draft, path, origin)) ?? [];
    },
    read: (block) => {
      const checked = checkShape(shape, block);
      if ('problems' in checked) return { fault: problemsText(checked.problems) };
      const { data } = checked;
      return {
        ...facts?.(data),
        ...(open === undefined ? {} : { open: (opening) => open(data, opening) }),
        ...(watch === undefined ? {} : { watch: (surroundings) => watch(data, surroundings) }),
      };
    },
  };
}
