import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Source } from '../runtime/runtime.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { checkReachable } from './plan-permissions.ts';
import type { PlannedRun } from './planned-run.ts';

export interface TransportInputs {
  /** `--transport`, else what the catalogue says. */
  readonly wanted?: RunValues['transport'];
  readonly source: Source;
  /** TCP ports the image declares, known once it is there. */
  readonly exposedPorts: readonly number[];
  /** `--target-port`, else the catalogue's. */
  readonly targetPort?: number | undefined;
}

export interface ChosenTransport {
  readonly transport: 'stdio' | 'streamable-http';
  /** For HTTP: the port the server listens on. */
  readonly targetPort?: number;
}

/** The transport of a planned run whose image declares these ports. Fails, too, where it could not be reached that way. */
export function transportOf(
  {
    request: { values },
    resolved: { source },
    profile,
  }: Pick<PlannedRun, 'request' | 'resolved' | 'profile'>,
  exposedPorts: readonly number[],
): ChosenTransport {
  const chosen = chooseTransport({
    wanted: values.transport,
    source,
    exposedPorts,
    targetPort: values.targetPort,
  });
  checkReachable(profile, chosen.transport);
  return chosen;
}

/**
 * How the server is spoken to: the flag, else the catalogue, else HTTP for an image that declares exactly one port, else
 * stdio (decision 0040). An HTTP server whose port nobody names is an error.
 */
export function chooseTransport(inputs: TransportInputs): ChosenTransport {
  const { wanted, source, exposedPorts, targetPort } = inputs;
  const told = source.kind === 'image' && exposedPorts.length === 1 ? 'streamable-http' : 'stdio';
  const transport = wanted ?? told;
  if (transport === 'sse')
    throw new SkepError('usage/not-available', {
      message: 'the transport "sse" is not available yet',
      hint: 'try --transport streamable-http, which most servers of today speak too',
    });
  if (transport === 'stdio') return { transport };
  const port = targetPort ?? (exposedPorts.length === 1 ? exposedPorts[0] : undefined);
  if (port !== undefined) return { transport, targetPort: port };
  const found =
    exposedPorts.length === 0 ? 'declares no port' : `declares the ports ${exposedPorts.join(', ')}`;
  throw new SkepError('usage/missing-argument', {
    message:
      source.kind === 'image'
        ? `which port does the server listen on? The image ${found}`
        : 'which port does the server listen on?',
    hint: 'name it with --target-port',
  });
}
