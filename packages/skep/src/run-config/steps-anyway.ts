import { z } from 'zod';
import { isNothing } from './is-nothing.ts';

/** Bytes of a request that the proxy of every workload takes (spec run-proxy §2.2). */
const BODY_LIMIT = 8_388_608;

const step = z.strictObject({ type: z.string(), parameters: z.record(z.string(), z.unknown()).nullish() });

/** Steps that every request passes here too, with the parameters that ask for no more than they do. */
const ANYWAY: Readonly<Record<string, (name: string, value: unknown) => boolean>> = {
  recovery: nothing,
  'mcp-parser': nothing,
  auth: nothing,
  origin: nothing,
  bodylimit: (name, value) => name === 'max_bytes' && value === BODY_LIMIT,
};

/** True for an element of `middleware_configs` (spec run-proxy §2.2) that names what Skep's own chain does anyway. */
export function isStepAnyway(value: unknown): boolean {
  const { data } = step.safeParse(value);
  if (data === undefined || !Object.hasOwn(ANYWAY, data.type)) return false;
  return Object.entries(data.parameters ?? {}).every(([name, member]) => ANYWAY[data.type]?.(name, member));
}

function nothing(_name: string, value: unknown): boolean {
  return isNothing(value);
}
