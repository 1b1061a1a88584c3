import { printable } from '@skep/core/terminal/printable.ts';
import type { Runtime, Source } from '../runtime/runtime.ts';
import type { RunValues } from '../settings/run-settings.ts';

/** What is said of flags about how an image is built, given where none is built. */
export function unusedBuild(
  values: Pick<RunValues, 'runtimeImage' | 'runtimeAddPackage'>,
  source: Source,
  { runsImages, kind }: Pick<Runtime, 'runsImages' | 'kind'>,
): readonly string[] {
  if (values.runtimeImage === undefined && values.runtimeAddPackage === undefined) return [];
  if (runsImages && source.kind === 'package') return [];
  const where = source.kind === 'image' ? 'on an image' : `in the ${kind}`;
  return [`Warning: --runtime-image and --runtime-add-package have no effect ${where}\n`];
}

/** What is said of an image, which nobody has verified yet (docs/behaviour/run.md#image-verification). */
export function unverified(source: Source): readonly string[] {
  if (source.kind !== 'image') return [];
  const image = printable(source.reference);
  return [`Warning: where the image "${image}" comes from is not verified, which is not available yet\n`];
}
