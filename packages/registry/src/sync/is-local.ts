import type { StoredSource } from '../store/rows.ts';

/** A source that is read in no time, and there when the machine is. */
export function isLocal({ kind, config }: Pick<StoredSource, 'kind' | 'config'>): boolean {
  if (kind !== 'file') return false;
  const block: unknown = JSON.parse(config);
  return typeof block === 'object' && block !== null && !('url' in block);
}
