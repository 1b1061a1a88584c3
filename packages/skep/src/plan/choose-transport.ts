import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkReachable } from './plan-permissions.ts';
import type { PlannedRun } from './planned-run.ts';

export interface ChosenTransport {
  readonly transport: 'stdio' | 'streamable-http' | 'sse';
  /** For HTTP: the port the server listens on. */
  readonly targetPort?: number;
}

/**
 * How the server is spoken to: the flag, else the catalogue, else HTTP for an image that declares exactly one port, else
 * stdio (decision 0040). An HTTP server whose port nobody names, or that could not be reached that way, is an error.
 */
export function chooseTransport(
  { values, resolved: { source }, profile }: Pick<PlannedRun, 'values' | 'resolved' | 'profile'>,
  exposedPorts: readonly number[],
): ChosenTransport {
  const [first, ...others] = exposedPorts;
  const only = others.length === 0 ? first : undefined;
  const transport =
    values.transport ?? (source.kind === 'image' && only !== undefined ? 'streamable-http' : 'stdio');
  if (transport === 'stdio') return { transport };
  const port = values.targetPort ?? only;
  if (port !== undefined) {
    checkReachable(profile, transport, { isolated: values.isolateNetwork });
    return { transport, targetPort: port };
  }
  const found = first === undefined ? 'declares no port' : `declares the ports ${exposedPorts.join(', ')}`;
  const image = source.kind === 'image' ? ` The image ${found}` : '';
  throw new SkepError('usage/missing-argument', {
    message: `which port does the server listen on?${image}`,
    hint: 'name it with --target-port',
  });
}
