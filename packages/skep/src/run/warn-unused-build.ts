import type { Terminal } from '../print/terminal.ts';
import type { RuntimeKind, Source } from '../runtime/runtime.ts';
import type { RunValues } from '../settings/run-settings.ts';

export interface BuildWish {
  readonly values: Pick<RunValues, 'runtimeImage' | 'runtimeAddPackage'>;
  readonly source: Source;
  readonly runtimeKind: RuntimeKind;
}

/** Says that flags about how an image is built are given where none is built. */
export function warnUnusedBuild(
  { values, source, runtimeKind }: BuildWish,
  terminal: Pick<Terminal, 'err'>,
): void {
  if (values.runtimeImage === undefined && values.runtimeAddPackage === undefined) return;
  const where =
    source.kind === 'image' ? 'on an image' : runtimeKind === 'sandbox' ? 'in the sandbox' : undefined;
  if (where === undefined) return;
  terminal.err(`Warning: --runtime-image and --runtime-add-package have no effect ${where}\n`);
}
