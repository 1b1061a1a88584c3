import { hash } from 'node:crypto';
import type { Source } from '../source.ts';

/** A catalogue that stands in the source itself (`file.data`, through the admin API only). */
export function inlineSource({ name, data }: { readonly name: string; readonly data: string }): Source {
  const bytes = Buffer.from(data);
  return {
    name,
    label: `data of source ${name}`,
    fetch: async () => Promise.resolve({ bytes, hash: hash('sha256', bytes) }),
  };
}
