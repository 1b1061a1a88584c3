import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkShape } from '../shape/check-shape.ts';
import { problemsText } from '../shape/problem.ts';
import type { SourceSettings, StoredSource } from '../store/rows.ts';
import { type FilterConfig, filterShape } from './filter/filter-shape.ts';
import type { SourceFormat, SourcePlace, SourceSurroundings, WatchSurroundings } from './kind.ts';
import { KINDS } from './kinds.ts';
import { clientOpener } from './open-client.ts';
import type { Source } from './source.ts';
import type { WatchedSource } from './watched-source.ts';

/** The settings of a source as the program works with them; the store keeps their texts. */
export interface DecodedSource extends SourcePlace {
  readonly format: SourceFormat | undefined;
  readonly filter: FilterConfig | undefined;
  readonly mayBeEmpty: boolean;
  /** What is wrong with the texts: they were checked before they were stored, so it is another program's hand. */
  readonly fault: string | undefined;
}

/** Reads what the store keeps of a source; this is the only place that reads it. */
export function decodeSource({
  kind,
  config,
  format,
  filter,
}: Pick<SourceSettings, 'kind' | 'config' | 'format' | 'filter'>): DecodedSource {
  const { read, mayBeEmpty = false } = KINDS[kind];
  const place = read(JSON.parse(config));
  const checked = filter === null ? { data: undefined } : checkShape(filterShape, JSON.parse(filter));
  const wrongFilter = 'problems' in checked ? `filter: ${problemsText(checked.problems)}` : undefined;
  return {
    ...place,
    format: format === 'toolhive' || format === 'upstream' ? format : undefined,
    filter: 'data' in checked ? checked.data : undefined,
    mayBeEmpty,
    fault: 'fault' in place ? place.fault : wrongFilter,
  };
}

/**
 * Makes the follower of a source that is watched: always with the operator's own access to the place, whoever made the source.
 * Fails with `config/invalid` for settings that are none, and with `internal/bug` for kinds that are not watched.
 */
export function openWatched(source: StoredSource, surroundings: WatchSurroundings): WatchedSource {
  const { watch, fault } = decodeSource(source);
  if (fault !== undefined) throw wrongSettings(source, fault);
  if (watch === undefined) throw notRead(source);
  return watch(surroundings);
}

/**
 * Makes the reader of a source. What the configuration file names is the operator's choice; a source made through the API
 * is held to the limits: files in the allowed folders only, and no private addresses. Fails with the codes of the kinds,
 * with `config/invalid` for settings that are none, and with `internal/bug` for kinds that are not read at all.
 */
export function openSource(source: StoredSource, surroundings: SourceSurroundings): Source {
  const { name, creationType } = source;
  const { open, fault, apiFault } = decodeSource(source);
  if (fault !== undefined) throw wrongSettings(source, fault);
  if (open === undefined) throw notRead(source);
  const isOwn = creationType === 'CONFIG';
  if (!isOwn && apiFault !== undefined) {
    throw new SkepError('source/invalid-credentials', { message: `source "${name}": ${apiFault}` });
  }
  const { limits, userAgent } = surroundings;
  const allowPrivate = isOwn || limits.allowPrivateIP;
  return open({
    ...surroundings,
    name,
    allowPrivate,
    folders: isOwn ? undefined : limits.allowedPaths,
    client: clientOpener({ userAgent, allowPrivate }),
  });
}

function wrongSettings({ name }: StoredSource, fault: string): SkepError {
  return new SkepError('config/invalid', { message: `source "${name}": ${fault}` });
}

function notRead({ name, kind }: StoredSource): SkepError {
  return new SkepError('internal/bug', { message: `source "${name}" of kind "${kind}" is not read` });
}
