import { isDeepStrictEqual } from 'node:util';
import type { RegistryConfig } from '../config/config.ts';

/** What keeps its value until the next start, by the key of the configuration. */
const KEPT: Readonly<Record<string, (config: RegistryConfig) => unknown>> = {
  storage: ({ database, storage }) => (database === undefined ? storage : undefined),
  database: ({ database }) => database?.postgres,
  telemetry: ({ telemetry }) => telemetry,
  cors: ({ cors }) => cors,
  'limits.pageSize': ({ serving }) => serving.pages.servers,
  'limits.versionsPageSize': ({ serving }) => serving.pages.versions,
  'limits.bundlePageSize': ({ serving }) => serving.pages.bundles,
  'limits.maxBodySize': ({ serving }) => serving.bodies.any,
  'limits.maxInlineDataSize': ({ serving }) => serving.bodies.inlineData,
  'limits.requestTimeout': ({ serving }) => serving.requestMs,
};

/** Keys in which a new configuration differs from the one of the start and that a running server cannot take over. */
export function keysForRestart(
  started: RegistryConfig,
  next: RegistryConfig,
  auditable: boolean,
): readonly string[] {
  const kept = Object.keys(KEPT).filter((key) => !isDeepStrictEqual(KEPT[key]?.(started), KEPT[key]?.(next)));
  return auditable || next.audit === 'off' ? kept : [...kept, 'audit'];
}
