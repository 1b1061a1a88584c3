import { SkepError } from '@skep/core/errors/skep-error.ts';

/** The first with the built-in SQLite that the store is made for; `engines` of the package says the same. */
const NEEDED = 24;

/** Fails with `usage/old-node` below Node 24. `version` as `process.version` has it. */
export function requireNode(version: string): void {
  const [, major = '0'] = /^v(\d+)\./.exec(version) ?? [];
  if (Number(major) >= NEEDED) return;
  throw new SkepError('usage/old-node', {
    message: `skep-registry needs Node ${String(NEEDED)} or newer, and this is ${version}`,
  });
}
