import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { createServer, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { systemClock } from '@skep/core/time/clock.ts';
import { canonicalAddress } from '@skep/core/fetch/address-class.ts';
import { Gateway } from './gateway.ts';
import { serveStream } from './serve-stream.ts';
import { type GatewayConfig, readGatewayConfig } from './gateway-config.ts';
import { serveHanded } from './handed.ts';
import { openInside } from './open-inside.ts';

const COLLECT_MS = 5_000;
const MAX_BUFFER_BYTES = 4 * 2 ** 20;

/**
 * The process of a gateway: reads its configuration from `SKEP_GATEWAY`, writes what it decides to standard output, and
 * ends with SIGTERM. Everything that goes wrong at the beginning ends it, so that nothing is let through.
 */
try {
  const config = readGatewayConfig(process.env['SKEP_GATEWAY'] ?? '');
  // Whoever reads may be away for a while; that is no reason to let nobody through.
  process.stdout.on('error', () => {});
  const gateway = new Gateway({
    ...config,
    machine: () => [...config.machine, ...ownAddresses()],
    clock: systemClock,
    write: (line) => void process.stdout.write(line),
  });
  setInterval(collectBuffers, COLLECT_MS).unref();
  const end = (): void => {
    gateway.flush();
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, end);
  if (config.mode !== 'listen') process.stdin.resume().once('close', end).on('error', end);
  if (config.mode === 'handed') await serveHanded(gateway, process);
  else if (config.mode === 'open') {
    if ((await openInside(config, gateway, process)) === 0) end();
  } else {
    for (const listener of config.listeners) await listen(gateway, listener);
    process.stdout.write(`${JSON.stringify({ listening: true })}\n`);
  }
} catch (error) {
  console.error(`Error: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}

/** Only while there are some; it takes about a millisecond. Needs `--expose-gc` (node-flags.ts). */
function collectBuffers(): void {
  if (process.memoryUsage().arrayBuffers > MAX_BUFFER_BYTES)
    globalThis.gc?.({ type: 'minor', execution: 'sync' });
}

async function listen(
  gateway: Gateway,
  { serve, host, port, to }: GatewayConfig['listeners'][number],
): Promise<void> {
  const server = createServer({ allowHalfOpen: true });
  serveStream(gateway, serve, server, to);
  server.listen(port, host);
  await once(server, 'listening');
  if (serve !== 'dns') return;
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
  gateway.serveDnsOverUdp(socket);
  socket.bind(port, host);
  await once(socket, 'listening');
}

function ownAddresses(): readonly string[] {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.map(({ address }) => canonicalAddress(address.replace(/%.*$/, '')) ?? '');
}
