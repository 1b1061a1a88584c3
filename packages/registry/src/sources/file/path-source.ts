import { hash } from 'node:crypto';
import { MAX_CATALOGUE_BYTES } from '@skep/core/catalog/catalogue-text.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import { assertAllowed } from '../allowed-path.ts';
import type { Source } from '../source.ts';

export interface FileSourceOptions {
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Folders in which the file must lie, checked before every fetch; absent means anywhere. */
  readonly within?: readonly string[];
  /** Default 100 MiB. */
  readonly maxBytes?: number;
}

/** A catalogue file on this machine, read whole each time: its time stamp alone does not tell whether it changed. */
export function fileSource(options: FileSourceOptions): Source {
  const { name, path, within, maxBytes = MAX_CATALOGUE_BYTES } = options;
  return {
    name,
    label: path,
    fetch: async (signal) => {
      if (within !== undefined) await assertAllowed(path, within);
      const bytes = await readBytes(path, { maxBytes, what: 'catalogue' });
      signal.throwIfAborted();
      return { bytes, hash: hash('sha256', bytes) };
    },
  };
}
