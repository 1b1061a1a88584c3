import { z } from 'zod';
import { proxySettings } from '@skep/proxy/settings.ts';

/** Bytes of a request that a proxy takes by itself. */
const BODY_LIMIT = proxySettings.find((row) => row.name === 'bodyLimitBytes')?.default;

const step = z.strictObject({ type: z.string(), parameters: z.record(z.string(), z.unknown()).nullish() });

/** Steps that every request passes here too, with the parameters that ask for no more than they do. */
const ANYWAY: Readonly<Record<string, (name: string, value: unknown) => boolean>> = {
  recovery: nothing,
  'mcp-parser': nothing,
  auth: nothing,
  origin: nothing,
  bodylimit: (name, value) => name === 'max_bytes' && value === BODY_LIMIT,
};

/** What `middleware_configs` asks for beyond what Skep's own chain does anyway, by type. */
export function stepsBeyond(value: unknown): readonly string[] {
  if (isNothing(value)) return [];
  return Array.isArray(value) ? value.flatMap((one) => stepBeyond(one) ?? []) : ['of the wrong shape'];
}

function stepBeyond(value: unknown): string | undefined {
  const { data } = step.safeParse(value);
  if (data === undefined) return 'of the wrong shape';
  const anyway = Object.hasOwn(ANYWAY, data.type) ? ANYWAY[data.type] : undefined;
  const met = Object.entries(data.parameters ?? {}).every(([name, member]) => anyway?.(name, member));
  return anyway !== undefined && met ? undefined : data.type;
}

function nothing(_name: string, value: unknown): boolean {
  return isNothing(value);
}

/** True for a member that asks for nothing. An object asks for something even when it is empty: `"audit_config": {}` turns auditing on. */
export function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || value === null || value === false || value === '' || value === 0;
}
