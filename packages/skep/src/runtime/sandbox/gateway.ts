import type { ChildProcess, Serializable } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { gatewayFile } from '../../egress/gateway-file.ts';
import type { GatewayConfig } from '../../egress/gateway-config.ts';
import type { Handed } from '../../egress/handed.ts';
import { GATEWAY_NODE_ENV, GATEWAY_NODE_FLAGS } from '../../egress/node-flags.ts';
import { proxyEnv } from '../../egress/proxy-env.ts';
import type { Ingress } from '../../egress/serve-ingress.ts';
import type { PortBinding } from '../runtime.ts';
import { confinedUser } from '../../permissions/confined-user.ts';
import { startConfined, type Bubblewrap, type ConfinedProgram } from './confine.ts';
import { logTail } from './log-file.ts';
import { machineNames } from './machine-names.ts';
import { insideNetwork, NAMES_LEAD_TO, type GatedNetwork } from './own-network.ts';
import { NODE } from './package-trees.ts';
import type { Gate, WorkloadPlaces } from './places.ts';

/** Where a workload finds its gateway: an address of its own loopback that no program would choose. */
const ADDRESS = '127.77.0.1';
const PROXY_PORT = 3128;
const LISTENERS: GatewayConfig['listeners'] = [
  { serve: 'proxy', host: ADDRESS, port: PROXY_PORT },
  { serve: 'direct-http', host: NAMES_LEAD_TO, port: 80 },
  { serve: 'direct-tls', host: NAMES_LEAD_TO, port: 443 },
  { serve: 'dns', host: ADDRESS, port: 53 },
];

/** What name resolution reads in a network whose only way out is a gateway. */
export const GATED_FILES: Readonly<Record<string, string>> = {
  '/etc/resolv.conf': `nameserver ${ADDRESS}\noptions attempts:1\n`,
  '/etc/hosts': '127.0.0.1 localhost skep\n::1 localhost\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
};

/** What leads programs to the gateway. */
export const GATED_ENV = proxyEnv({ host: ADDRESS, port: PROXY_PORT });

/** How long both processes may take, in milliseconds. */
const OPEN_MS = 10_000;

export interface Gating {
  readonly bubblewrap: Bubblewrap;
  readonly network: GatedNetwork;
  /** Real path of the Node binary. */
  readonly node: string;
  readonly places: WorkloadPlaces;
  readonly ports: readonly PortBinding[];
  /** A process that is in the network, once that is made. */
  readonly made: Promise<number>;
}

/**
 * Opens the one way out of a workload's network and, for its ports, into it (decisions 0255 and 0259): a process of this
 * machine that serves sockets which another one opens inside and, without ports, then ends. Both are confined, and live as
 * long as anything holds the workload's life pipe, whatever becomes of this program. Answers with the pipes that they hold
 * themselves. Throws `runtime/start-failed`.
 */
export async function openGateway(gating: Gating): Promise<readonly Gate[]> {
  const { places, ports } = gating;
  using outside = new DisposableStack();
  const entries: Outside[] = [];
  for (const port of ports) {
    const server = outside.adopt(await listenOutside(port), (one) => void one.close());
    const proxy = `${port.hostIp}:${port.hostPort}`;
    entries.push({ server, entry: { host: '127.0.0.1', port: port.containerPort, proxy } });
  }
  using parts = new DisposableStack();
  const end = (child: ChildProcess): void => void (child.connected && child.kill('SIGKILL'));
  const gateway = parts.adopt(await startPart(gating, 'gate'), end);
  const opener = parts.adopt(await startPart(gating, 'entry', await gating.made), end);
  try {
    await handOver({ opener, gateway, entries });
  } catch (error) {
    const said = (await logTail(places.gateLog, 2)).trim().replaceAll('\n', '; ');
    throw failed(
      `its gateway could not be started: ${said || (error instanceof Error ? error.message : '')}`,
    );
  }
  // Nothing of what the gateway reads may reach this program.
  for (const one of [gateway, opener]) {
    if (one.connected) one.disconnect();
    one.unref();
  }
  return entries.length === 0 ? ['gate'] : ['gate', 'entry'];
}

interface Outside {
  readonly server: Server;
  readonly entry: Ingress;
}

/** Nobody is told of the port yet; who comes too early is sent away. */
async function listenOutside({ hostIp, hostPort }: PortBinding): Promise<Server> {
  const server = createServer((early) => void early.destroy());
  try {
    server.listen(hostPort, hostIp);
    await once(server, 'listening');
    return server;
  } catch (cause) {
    throw failed(`port ${hostPort} of ${hostIp} cannot be forwarded: ${errnoOf(cause)}`, cause);
  }
}

/** Starts the gateway itself (`gate`), or what opens its sockets in the network of that process (`entry`). */
async function startPart(gating: Gating, gate: Gate, pid?: number): Promise<ChildProcess> {
  const { bubblewrap, network, places } = gating;
  const asRoot = bubblewrap.setpriv !== undefined;
  using opened = new DisposableStack();
  const open = (file: string, flags: number | string): number =>
    opened.adopt(openSync(file, flags, 0o600), closeSync);
  const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = constants;
  // The first of both begins the files anew.
  const anew = O_WRONLY | O_APPEND | O_CREAT | (gate === 'gate' ? O_TRUNC : 0);
  const { child } = startConfined(bubblewrap, await confinedPart(gating, gate), {
    // Its end is that of the workload.
    stdio: [
      open(places.life, O_RDONLY | O_NONBLOCK),
      open(places.decisions, anew),
      open(places.gateLog, anew),
    ],
    life: open(places[gate], O_RDWR),
    channel: true,
    ...(pid !== undefined && { within: (command) => insideNetwork(network.tools, { asRoot, pid }, command) }),
  });
  return child;
}

/** Sees nothing of this machine but system programs, its own program and how names are resolved here. */
async function confinedPart({ bubblewrap, network, node }: Gating, gate: Gate): Promise<ConfinedProgram> {
  const { policy, isolated } = network;
  const { file, needs } = gatewayFile();
  const names = gate === 'gate' ? machineNames() : { mounts: [], links: {} };
  const config: GatewayConfig = {
    mode: gate === 'gate' ? 'handed' : 'open',
    policy,
    machine: [NAMES_LEAD_TO],
    answerWith: NAMES_LEAD_TO,
    runtimeGateway: { addresses: [], ...(policy.runtimeGateway && { leadsTo: '127.0.0.1' }) },
    listeners: LISTENERS,
    judgesEntries: isolated,
  };
  const asRoot = bubblewrap.setpriv !== undefined;
  return {
    command: [NODE, ...GATEWAY_NODE_FLAGS, file],
    env: { ...GATEWAY_NODE_ENV, SKEP_GATEWAY: JSON.stringify(config) },
    mounts: [
      { source: node, target: NODE, readOnly: true },
      { source: needs, target: needs, readOnly: true },
      ...names.mounts,
    ],
    links: names.links,
    network: 'joined',
    // Not the user of any server.
    user: await confinedUser({ asRoot, name: `${gate} of ${policy.workload}`, mounts: [] }),
  };
}

interface Parts {
  readonly opener: ChildProcess;
  readonly gateway: ChildProcess;
  readonly entries: readonly Outside[];
}

/** Leads the sockets from the one to the other, until all are served. */
async function handOver({ opener, gateway, entries }: Parts): Promise<void> {
  const over = AbortSignal.timeout(OPEN_MS);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ended = (): void => reject(new TypeError('it ended'));
  gateway.once('exit', ended).once('error', ended);
  opener.once('error', ended).once('exit', (code) => code !== 0 && ended());
  over.addEventListener('abort', () => reject(new TypeError('it took too long')));
  opener.on('message', (message: Handed, socket) => {
    // Sent in order: the gateway has all sockets before it hears that there are no more.
    gateway.send(message, socket, () => void (socket && 'close' in socket && socket.close()));
  });
  gateway.on('message', () => resolve());
  const told = (handed: Handed): Serializable => handed;
  for (const { server, entry } of entries) opener.send(told({ entry }), server);
  opener.send(told({ all: true }));
  try {
    await promise;
  } finally {
    for (const one of [opener, gateway]) one.removeAllListeners('message').removeAllListeners('exit');
  }
}

const failed = (message: string, cause?: unknown) =>
  new SkepError('runtime/start-failed', { message, cause });
