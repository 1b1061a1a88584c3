import type { RegistryConfig } from '../config/config.ts';
import { configShape } from '../config/shape.ts';
import { type Limits, limitsShape } from '../shape/limits.ts';
import { differingPaths, keptUntilRestart } from '../shape/restart.ts';

/** Keys in which a new configuration differs from the one of the start and that a running server cannot take over. */
export function keysForRestart(
  started: RegistryConfig,
  next: RegistryConfig,
  auditable: boolean,
): readonly string[] {
  const kept = differingPaths(keptUntilRestart(configShape), [started, next]);
  return auditable || next.audit === 'off' ? kept : [...kept, 'audit'];
}

/** The limits of a new configuration, but those of the start where a running server keeps them. */
export function limitsInForce(started: Limits, next: Limits): Limits {
  const kept = keptUntilRestart(limitsShape).map(([name = '']) => [name, Reflect.get(started, name)]);
  return Object.freeze({ ...next, ...Object.fromEntries(kept) });
}
