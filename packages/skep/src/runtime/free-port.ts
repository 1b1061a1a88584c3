import { createServer } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';

const LOWEST = 10_000;
const HIGHEST = 65_535;
const DRAWS = 10;

/** Resolves to true when a TCP listener can be opened on `host:port` right now. */
export function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

export interface PortRequest {
  readonly host: string;
  /** 0 or absent asks for any free port. */
  readonly wanted?: number | undefined;
  /** Ports promised to other workloads, with their names: taken, even while nothing listens on them. */
  readonly promised: () => Promise<ReadonlyMap<number, string>>;
  /** What the same name had before: taken again, where it can be had and no other was asked for. */
  readonly had?: number | undefined;
  /** Ports that are not drawn, because other names had them. */
  readonly spared?: ReadonlySet<number>;
  /** A whole number in [min, max]. */
  readonly random: (min: number, max: number) => number;
  /** How the person can choose another port, where it is not the flag. */
  readonly hint?: string;
}

/**
 * Fails at once for a wanted port that cannot be had (`choosePort`), before anything costs time. The function that it gives
 * back chooses, when all that takes time is done: what was free before a long fetch may be taken after it.
 */
export async function planPort(request: PortRequest): Promise<() => Promise<number>> {
  if (request.wanted !== undefined && request.wanted !== 0) await choosePort(request);
  return () => choosePort(request);
}

/**
 * The port the proxy will listen on, checked on the host it will listen on (docs/behaviour/run.md#ports). A wanted port
 * that is busy or promised is an error (`run/port-busy`), never silently replaced.
 */
export async function choosePort(request: PortRequest): Promise<number> {
  const { host, wanted, had, spared, random, hint } = request;
  const promised = await request.promised();
  const usable = async (port: number): Promise<boolean> => !promised.has(port) && (await isFree(host, port));
  if (wanted !== undefined && wanted !== 0) {
    if (await usable(wanted)) return wanted;
    const holder = promised.get(wanted);
    const whose = holder === undefined ? 'another program listens there' : `workload "${holder}" has it`;
    throw new SkepError('run/port-busy', {
      message: `requested proxy port ${wanted} is not available: ${whose}`,
      hint,
    });
  }
  if (had !== undefined && (await usable(had))) return had;
  for (let draw = 0; draw < DRAWS; draw += 1) {
    const port = random(LOWEST, HIGHEST);
    if (spared?.has(port) !== true && (await usable(port))) return port;
  }
  for (let port = LOWEST; port <= HIGHEST; port += 1) {
    if (await usable(port)) return port;
  }
  throw new SkepError('run/port-busy', { message: 'could not find an available port' });
}
