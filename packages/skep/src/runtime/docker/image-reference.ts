import { SkepError } from '@skep/core/errors/skep-error.ts';

/** An image reference taken apart the way the engine does it. */
export interface ImageReference {
  /** Registry host as written or implied, for example `docker.io` or `127.0.0.1:5000`. */
  readonly host: string;
  /** As written, without tag and digest. */
  readonly repository: string;
  readonly tag?: string;
  /** `sha256:…` */
  readonly digest?: string;
}

/** Parses `[host/]path[:tag][@digest]` (distribution reference grammar). Throws `runtime/image-not-found`. */
export function parseImageReference(text: string): ImageReference {
  const match = REFERENCE.exec(text);
  const repository = match?.groups?.['repository'];
  if (text.length > 512 || repository === undefined) {
    throw new SkepError('runtime/image-not-found', { message: `"${text}" is no image reference` });
  }
  const first = repository.split('/')[0] ?? '';
  const hasHost = repository.includes('/') && (/[.:]/.test(first) || first === 'localhost');
  const tag = match?.groups?.['tag'];
  const digest = match?.groups?.['digest'];
  return {
    host: hasHost ? first : 'docker.io',
    repository,
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** True when the reference may point at something else tomorrow and is therefore pulled each time. */
export function isMoving(reference: ImageReference): boolean {
  return reference.digest === undefined && (reference.tag ?? 'latest') === 'latest';
}

const REFERENCE =
  /^(?<repository>(?:[A-Za-z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)(?::(?<tag>\w[\w.-]{0,127}))?(?:@(?<digest>sha256:[0-9a-f]{64}))?$/;
