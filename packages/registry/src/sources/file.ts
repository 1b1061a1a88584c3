import { hash } from 'node:crypto';
import { MAX_CATALOGUE_BYTES } from '@skep/core/catalog/catalogue-text.ts';
import { readBytes } from '@skep/core/files/read-limited.ts';
import { assertAllowed } from './allowed-path.ts';
import type { Source } from './source.ts';

export interface FileSourceOptions {
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Folders in which the file must lie, looked at for every fetch; absent means anywhere. */
  readonly within?: readonly string[];
}

/** A catalogue file on this machine, read whole each time: its time stamp alone does not tell whether it changed. */
export function fileSource({ name, path, within }: FileSourceOptions): Source {
  return {
    name,
    label: path,
    fetch: async (signal) => {
      if (within !== undefined) await assertAllowed(path, within);
      const bytes = await readBytes(path, { maxBytes: MAX_CATALOGUE_BYTES, what: 'catalogue' });
      signal.throwIfAborted();
      return { bytes, hash: hash('sha256', bytes) };
    },
  };
}
