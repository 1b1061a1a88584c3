import { printable } from '@skep/core/terminal/printable.ts';
import type { Terminal } from '../print/terminal.ts';
import type { Source } from '../runtime/runtime.ts';

/**
 * Says that nobody has looked where an image comes from (`--image-verification warn`,
 * docs/behaviour/run.md#image-verification).
 */
export function warnUnverified(source: Source, terminal: Pick<Terminal, 'err'>): void {
  if (source.kind !== 'image') return;
  const image = printable(source.reference);
  terminal.err(
    `Warning: where the image "${image}" comes from is not verified, which is not available yet\n`,
  );
}
