import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { PackageSource } from '../protocol/reference.ts';
import { parseHttpUrl } from '../catalog/http-url.ts';
import { isPackageReference, parsePackageReference } from '../protocol/reference.ts';

/** What the positional argument of `skep run` can mean before anything was looked up. */
export type Target =
  | { readonly kind: 'package'; readonly reference: string; readonly source: PackageSource }
  | { readonly kind: 'remote'; readonly url: URL }
  /** A catalogue name; if the catalogue definitely does not have it, an image, when it looks like one. */
  | { readonly kind: 'name'; readonly name: string; readonly mayBeImage: boolean };

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
// What an image reference may be made of; anything else can only be a mistake or an attack.
const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._/:@-]*$/;

/** Fails with `target/invalid`, `target/invalid-package` or `usage/missing-argument`; looks nothing up. */
export function parseTarget(text: string): Target {
  if (text === '') throw new SkepError('usage/missing-argument', { message: 'missing argument SERVER' });
  if (isPackageReference(text))
    return { kind: 'package', reference: text, source: parsePackageReference(text) };
  const scheme = SCHEME.exec(text)?.[1];
  if (scheme === 'http' || scheme === 'https') return { kind: 'remote', url: parseUrl(text) };
  if (scheme !== undefined) {
    throw new SkepError('target/invalid', {
      message: `invalid protocol scheme: "${scheme}://"`,
      hint: 'supported schemes are npx://, uvx://, go://, http:// and https://',
    });
  }
  if (text.length > 512 || /[\s\p{Cc}]/u.test(text)) {
    throw new SkepError('target/invalid', { message: `cannot run ${JSON.stringify(text.slice(0, 80))}` });
  }
  return { kind: 'name', name: text, mayBeImage: IMAGE.test(text) && /[/:@]/.test(text) };
}

function parseUrl(text: string): URL {
  const url = parseHttpUrl(text);
  if (url !== undefined) return url;
  throw new SkepError('target/invalid', { message: `invalid URL "${text}"`, hint: 'it names no host' });
}
