import { SkepError } from '@skep/core/errors/skep-error.ts';
import { canonicalAddress } from '@skep/core/fetch/address-class.ts';
import { listOf, members, nullish, optional, orEmpty, text } from '@skep/core/settings/shape.ts';
import type { Decision } from '../../../egress/decision.ts';
import type { GatewayConfig } from '../../../egress/gateway-config.ts';
import { GATEWAY_NODE_ENV } from '../../../egress/node-flags.ts';
import { readDecisions } from '../../../egress/read-decisions.ts';
import { GATEWAY_NAMES } from '../../../permissions/host-rule.ts';
import type { EngineClient } from '../client.ts';
import { containerIds, containerPath, removeContainer } from '../containers.ts';
import { engineMessage } from '../failure.ts';
import { AUXILIARY_LABEL, MANAGED, MANAGED_LABEL, NAME_LABEL, OWNER_LABEL } from '../labels.ts';
import { containerLogs } from '../logs.ts';
import { machineAddresses } from '../network/machine-ranges.ts';
import { change } from '../network/replace-gone-network.ts';
import { addressIn, type Range } from '../network/subnets.ts';
import { exposedPorts, portBindings } from '../ports.ts';
import type { PortBinding } from '../../runtime.ts';
import { readAnswer } from '../read-answer.ts';
import { ensureGatewayImage, type GatewayImage, type GatewayMaker } from './gateway-image.ts';
import { gatewayAddress, PROXY_PORT, serverAddress, type Isolation } from './isolation.ts';

/** A network of a workload, as its gateway is connected with it. */
export interface GatewayNetwork {
  readonly id: string;
  readonly subnet: Range;
}

export interface GatewayWish {
  /** The workload's. */
  readonly name: string;
  readonly owner: string;
  readonly isolation: Isolation;
  readonly outward: GatewayNetwork;
  readonly internal: GatewayNetwork;
}

/** Nobody of an image or of this machine. */
const USER = '65532:65532';
const MEMORY_BYTES = 128 * 1024 * 1024;
/** Node has about a dozen threads. */
const MAX_PROCESSES = 64;
const LOG = { Type: 'json-file', Config: { 'max-size': '2m', 'max-file': '2' } };
const LISTENING_MS = 30_000;

/**
 * Makes and starts the gateway of an isolated workload anew, in place of one that is there, and answers once it listens: a
 * gateway keeps nothing, and this machine may have other addresses by now. Where it does not listen nothing of it stays.
 * Fails as `ensureGatewayImage` does, with `runtime/start-failed`, or `runtime/name-taken`.
 */
export async function startGateway(maker: GatewayMaker, wish: GatewayWish): Promise<void> {
  const { client } = maker;
  const [image, config] = await Promise.all([
    ensureGatewayImage(maker),
    gatewayConfig(client, wish),
    removeGateway(client, wish.name),
  ]);
  const name = `skep-${wish.name}-gateway`;
  const body = gatewayBody(wish, { image, config });
  const query = { name };
  const made = await client.call({ method: 'POST', path: '/containers/create', query, body });
  if (made.status === 409)
    throw new SkepError('runtime/name-taken', {
      message: `a container named "${name}" exists already, and the gateway of "${wish.name}" needs that name`,
      hint: 'give the workload another --name',
    });
  if (made.status !== 201) throw gatewayFailure(wish.name, engineMessage(made.body));
  const { Id: id } = readAnswer(members({ Id: text }), made.body);
  try {
    const address = gatewayAddress(wish.isolation.internal);
    const more = { EndpointConfig: { IPAMConfig: { IPv4Address: address } } };
    await change(client, 'connect', { network: wish.internal.id, container: id, more });
    const started = await client.call({ method: 'POST', path: containerPath(id, '/start') });
    if (started.status >= 400) throw gatewayFailure(wish.name, engineMessage(started.body));
    await untilListening(client, wish.name, id);
    refuseSharedMachine(wish);
  } catch (error) {
    await removeContainer(client, id, `remove container "${id}"`);
    throw error;
  }
}

/** Ids of the gateways of a workload, running or not; of those of `owner` alone where that is said. */
export function gatewayIds(
  client: EngineClient,
  workload: string,
  owner?: string,
): Promise<readonly string[]> {
  const whose = owner === undefined ? [] : [`${OWNER_LABEL}=${owner}`];
  return containerIds(client, {
    label: [MANAGED, `${AUXILIARY_LABEL}=true`, `${NAME_LABEL}=${workload}`, ...whose],
  });
}

/** Removes the gateway of a workload, whatever it does; see `gatewayIds`. Idempotent. */
export async function removeGateway(client: EngineClient, workload: string, owner?: string): Promise<void> {
  for (const id of await gatewayIds(client, workload, owner))
    await removeContainer(client, id, `remove container "${id}"`);
}

/** Lets it write what it counted, and ends it. What it wrote stays until the next start. */
export async function stopGateway(client: EngineClient, workload: string): Promise<void> {
  for (const id of await gatewayIds(client, workload)) {
    const request = { method: 'POST', path: containerPath(id, '/stop'), query: { t: '2' } } as const;
    await client.ask(`stop container "${id}"`, request, 304, 404);
  }
}

/** True while the gateway of a workload runs. */
export async function isGatewayUp(client: EngineClient, workload: string): Promise<boolean> {
  const label = [MANAGED, `${AUXILIARY_LABEL}=true`, `${NAME_LABEL}=${workload}`];
  return (await containerIds(client, { label, status: ['running'] })).length > 0;
}

/** What the gateway of a workload decided since it was started; empty where there is none. */
export async function gatewayTraffic(client: EngineClient, workload: string): Promise<readonly Decision[]> {
  const [id] = await gatewayIds(client, workload);
  if (id === undefined) return [];
  const { signal } = new AbortController();
  let lines = '';
  for await (const { stream, bytes } of containerLogs(client, id, { follow: false, signal }))
    if (stream === 'stdout') lines += Buffer.from(bytes).toString('utf8');
  return readDecisions(lines);
}

interface BodyParts {
  readonly image: GatewayImage;
  readonly config: GatewayConfig;
}

function gatewayBody(
  { name, owner, outward, isolation: { ports, policy } }: GatewayWish,
  { image, config }: BodyParts,
): object {
  return {
    Image: image.reference,
    Entrypoint: image.entrypoint,
    Env: [
      ...image.env,
      ...Object.entries(GATEWAY_NODE_ENV).map(([key, value]) => `${key}=${value}`),
      `SKEP_GATEWAY=${JSON.stringify(config)}`,
    ],
    User: USER,
    Labels: {
      [MANAGED_LABEL]: 'true',
      [NAME_LABEL]: name,
      [OWNER_LABEL]: owner,
      [AUXILIARY_LABEL]: 'true',
    },
    ExposedPorts: exposedPorts(ports),
    HostConfig: {
      NetworkMode: outward.id,
      PortBindings: portBindings(ports),
      ...(policy.runtimeGateway ? { ExtraHosts: GATEWAY_NAMES.map((one) => `${one}:host-gateway`) } : {}),
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Sysctls: {
        // Newer engines do so themselves.
        'net.ipv4.ip_unprivileged_port_start': '0',
        // A container forwards like its machine does, and this one is on two networks.
        'net.ipv4.ip_forward': '0',
      },
      PidsLimit: MAX_PROCESSES,
      Memory: MEMORY_BYTES,
      MemorySwap: MEMORY_BYTES,
      // Without it nothing gets through, and the next start of the workload makes another one.
      RestartPolicy: { Name: 'no' },
      LogConfig: LOG,
    },
    NetworkingConfig: {
      EndpointsConfig: {
        [outward.id]: {
          NetworkID: outward.id,
          IPAMConfig: { IPv4Address: gatewayAddress(outward.subnet) },
        },
      },
    },
  };
}

/** One for each port of the server: that of Skep's own proxy comes first. */
const ingressPorts = (ports: readonly PortBinding[]): readonly PortBinding[] =>
  ports.filter(
    (one, at) => ports.findIndex(({ containerPort }) => containerPort === one.containerPort) === at,
  );

async function gatewayConfig(
  client: EngineClient,
  { isolation: { policy, internal, ports }, outward }: GatewayWish,
): Promise<GatewayConfig> {
  const inside = gatewayAddress(internal);
  const machine = machineAddresses().flatMap((one) => canonicalAddress(one.replace(/%.*$/, '')) ?? []);
  const listen = (serve: GatewayConfig['listeners'][number]['serve'], at: number, host = inside) => ({
    serve,
    host,
    port: at,
  });
  return {
    mode: 'listen',
    policy,
    machine: [...new Set(machine)],
    answerWith: inside,
    runtimeGateway: {
      addresses: [
        ...new Set([...(await bridgeGateways(client)), addressIn(outward.subnet, 1), addressIn(internal, 1)]),
      ],
    },
    listeners: [
      listen('proxy', PROXY_PORT),
      listen('dns', 53),
      listen('direct-tls', 443),
      listen('direct-http', 80),
      ...ingressPorts(ports).map(({ hostPort, containerPort }) => ({
        ...listen('ingress', containerPort, gatewayAddress(outward.subnet)),
        to: { host: serverAddress(internal), port: containerPort, proxy: `127.0.0.1:${hostPort}` },
      })),
    ],
  };
}

const networkShape = members({
  IPAM: members({ Config: orEmpty(listOf(members({ Gateway: nullish(text), Subnet: optional(text) })), []) }),
});

/** Addresses by which containers reach the machine over the engine's own bridge. */
async function bridgeGateways(client: EngineClient): Promise<readonly string[]> {
  const { status, body } = await client.ask('inspect its bridge', { path: '/networks/bridge' }, 404);
  if (status === 404) return [];
  return readAnswer(networkShape, body).IPAM.Config.flatMap(({ Gateway, Subnet }) => {
    // Older engines leave out an address that nobody chose: the first one.
    const first = (Subnet ?? '').replace(/\.0\/\d+$/, '.1');
    return canonicalAddress(Gateway ?? '') ?? canonicalAddress(first) ?? [];
  });
}

/** Resolves once it has said so. Fails with `runtime/start-failed`, and what it said instead. */
async function untilListening(client: EngineClient, workload: string, id: string): Promise<void> {
  const signal = AbortSignal.timeout(LISTENING_MS);
  let said = '';
  for await (const { stream, bytes } of containerLogs(client, id, { follow: true, signal })) {
    const chunk = Buffer.from(bytes).toString('utf8');
    if (stream === 'stdout' && /^\{"listening":true\}$/m.test(chunk)) return;
    if (stream === 'stderr') said = `${said}${chunk}`.slice(-500);
  }
  const why = signal.aborted ? `it does not listen after ${LISTENING_MS / 1000} s` : said.trim();
  throw gatewayFailure(workload, why || 'it ended');
}

/**
 * An engine that gives this machine an address on the internal network would let the server reach all services of the
 * machine. Fails with `runtime/start-failed` where one did.
 */
function refuseSharedMachine({ name, isolation: { internal } }: GatewayWish): void {
  const own = new Set(machineAddresses());
  const found = Array.from({ length: 8 }, (_, n) => addressIn(internal, n)).find((one) => own.has(one));
  if (found !== undefined)
    throw gatewayFailure(name, `the engine gave this machine the address ${found} on its internal network`);
}

function gatewayFailure(workload: string, why: string): SkepError {
  return new SkepError('runtime/start-failed', {
    message: `the gateway of workload "${workload}" could not be started: ${why}`,
    hint: 'run it with --isolate-network=false, or correct what the message names',
  });
}
