import { type Authority, showAuthority } from './host-name.ts';
import type { Denial } from './judge.ts';

/** What whoever asked is told: what, for which workload, why, and the line that would allow it. */
export function refusalText(workload: string, asked: Authority, { reason, permittable }: Denial): string {
  const shown = showAuthority(asked);
  const lines = [`Skep does not let "${workload}" reach ${shown}: ${reason}.`];
  if (permittable) lines.push(`To allow it: skep permit ${workload} ${shown}`);
  return lines.join('\n');
}
