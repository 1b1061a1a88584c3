import { SkepError } from '@skep/core/errors/skep-error.ts';
import { packageReference } from '../../protocol/reference.ts';
import type { FoundPackage, Lookup } from './found-package.ts';

/** Throws `usage/not-available`. */
export async function findGoPackage({ source }: Lookup): Promise<FoundPackage> {
  throw new SkepError('usage/not-available', {
    message: `"${packageReference(source)}": go packages are not available yet`,
    hint: 'run an image of it, or a package with npx:// or uvx://',
  });
}
