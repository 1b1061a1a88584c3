import { SkepError } from '@skep/core/errors/skep-error.ts';
import { lowerHardening, type Hardening } from '../permissions/hardening.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { lastLines } from './ready.ts';

/** Of what a server wrote before it failed. */
export const LOOKED_AT = 200;

/** How hard a server is to be held instead, where it failed to start for how it was held; undefined where that is not why. */
export async function triedNext(
  { name, hardening, read_only }: RunConfig,
  error: unknown,
  { runtime }: { readonly runtime: Runtime },
): Promise<Hardening | undefined> {
  if (hardening === undefined || !(error instanceof SkepError)) return undefined;
  const isLate = error.code === 'run/no-answer';
  const insists = read_only === true;
  if (error.code === 'runtime/start-failed')
    return lowerHardening(hardening, { said: [error.message], isLate, insists });
  if (!isLate && error.code !== 'run/crashed-at-start') return undefined;
  const said = await lastLines(runtime, name, { count: LOOKED_AT }).catch(() => []);
  return lowerHardening(hardening, { said, isLate, insists });
}

/** What the person who waits for a start is told of a further one. */
export function loweredText(name: string, next: Hardening): string {
  return next === 'none'
    ? `${name} does not start with its own files read-only, so it is started with what its image says`
    : `${name} does not start as an ordinary user, so it is started as the root of its image`;
}
