import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import type { RuntimeEnvironment } from '../environment.ts';
import type {
  Attachment,
  Observed,
  Prepared,
  PrepareRequest,
  Runtime,
  RuntimeInfo,
  WorkloadSpec,
} from '../runtime.ts';
import { userFile } from '../user-file.ts';
import { checkWorkloadName } from '../workload-name.ts';
import { attachment } from './attach.ts';
import { EngineClient, type EngineAnswer, type EngineRequest } from './client.ts';
import { containerBody, sharesNetwork } from './container-body.ts';
import { endpointText, type Endpoint } from './endpoint.ts';
import { containerEvents } from './events.ts';
import { engineMessage, refused } from './failure.ts';
import { discardImage, findImage } from './images.ts';
import { filters, MANAGED_LABEL } from './labels.ts';
import { containerLogs } from './logs.ts';
import {
  ensureExternalNetwork,
  isNetworkGone,
  isOnSharedNetwork,
  reconnect,
  removeUnusedNetwork,
} from './network.ts';
import { listedIds, observedContainer } from './observed.ts';
import { hasOwnFiles, isFromCurrentImage } from './own-files.ts';
import { ensureImage } from './pull.ts';
import { sweepBuilds } from './sweep.ts';

/** The runtime port on a Docker-compatible engine. Nothing is connected before the first call. */
export function dockerRuntime(
  endpoint: Endpoint,
  environment: RuntimeEnvironment,
  client = new EngineClient(endpoint),
): Runtime {
  return {
    kind: 'docker',
    runsImages: true,
    reachesLoopback: false,
    keepsFiles: false,
    probe: (signal) => probe(client, signal),
    prepare: (request) => prepare(client, environment, request),
    has: async (reference) => (await findImage(client, reference)) !== undefined,
    discard: (reference) => discardImage(client, reference),
    sweep: () => sweepBuilds(client, environment),
    cautions: ({ user }) =>
      Promise.resolve(user === undefined ? [] : ['--sandbox-user has no effect on a container engine']),
    create: (spec) => create(client, spec),
    replace: (spec) => replace(client, spec),
    isCurrent: (name) => isFromCurrentImage(client, name),
    start: (name) => start(client, name),
    attach: (name) => attach(client, name),
    wait: (name, signal) => wait(client, name, signal),
    stop: (name, graceMs) => stop(client, name, graceMs),
    remove: (name) => remove(client, name),
    inspect: (name) => inspect(client, name),
    list: () => list(client),
    logs: (name, request) => containerLogs(client, name, request),
    events: (signal) => containerEvents(client, signal),
  };
}

const infoShape = z.object({
  ID: z.string().nullish(),
  Name: z.string().nullish(),
  ServerVersion: z.string(),
});

async function probe(client: EngineClient, signal: AbortSignal): Promise<RuntimeInfo> {
  const answer = await client.call({ method: 'GET', path: '/info', signal });
  if (answer.status !== 200) throw refused('describe itself', answer);
  const info = infoShape.parse(answer.body);
  return {
    kind: 'docker',
    // Podman has no engine id; its host name is the nearest thing.
    id: info.ID || info.Name || endpointText(client.endpoint),
    version: info.ServerVersion,
    endpoint: endpointText(client.endpoint),
  };
}

async function prepare(
  client: EngineClient,
  environment: RuntimeEnvironment,
  request: PrepareRequest,
): Promise<Prepared> {
  const { env, home } = environment;
  const dockerConfig = await userFile(
    path.join(env['DOCKER_CONFIG'] ?? path.join(home, '.docker'), 'config.json'),
  );
  const credentials = { env, ...(dockerConfig === undefined ? {} : { dockerConfig }) };
  const ensure = (reference: string) =>
    ensureImage(client, { reference, credentials, report: request.report, signal: request.signal });
  const { source } = request;
  if (source.kind === 'package') {
    const { preparePackage } = await import('./prepare-package.ts');
    return preparePackage({ client, environment, source, request, ensureBase: ensure });
  }
  const image = await ensure(source.reference);
  return { reference: source.reference, ours: false, exposedPorts: image.exposedPorts };
}

/** On failure the network made for it is removed again, unless another workload uses it. */
async function create(client: EngineClient, spec: WorkloadSpec): Promise<void> {
  checkWorkloadName(spec.name);
  const shared = sharesNetwork(spec);
  const made = await post(client, spec, shared);
  if (made.status === 201) return;
  if (shared) await removeUnusedNetwork(client);
  throw createFailure(spec, made);
}

/** A container cannot change its image, and what was written inside goes with it. */
async function replace(client: EngineClient, spec: WorkloadSpec): Promise<boolean> {
  const lost = await hasOwnFiles(client, spec.name);
  await remove(client, spec.name);
  await create(client, spec);
  return !lost;
}

/** The network may be removed just before the container would hold it, when another last workload goes away. */
async function post(client: EngineClient, spec: WorkloadSpec, shared: boolean): Promise<EngineAnswer> {
  const { podman } = await client.about();
  for (let tries = 3; ; tries -= 1) {
    const sharedNetwork = shared ? await ensureExternalNetwork(client) : undefined;
    const made = await client.call({
      method: 'POST',
      path: '/containers/create',
      query: { name: spec.name },
      body: containerBody(spec, { sharedNetwork, podman }),
    });
    if (!shared || tries === 1 || !isNetworkGone(made)) return made;
  }
}

function createFailure(spec: WorkloadSpec, answer: { status: number; body: unknown }): SkepError {
  if (answer.status === 409) {
    return new SkepError('runtime/name-taken', {
      message: `a container named "${spec.name}" exists already`,
    });
  }
  const message = engineMessage(answer.body);
  if (answer.status === 404 && /image/i.test(message)) {
    return new SkepError('runtime/image-not-found', {
      message: `image "${spec.reference}" is not on the engine`,
      hint: 'start the workload with skep start, which pulls or builds it again',
    });
  }
  return refused(`create container "${spec.name}"`, answer);
}

/** A network that is gone, by another's removal or by a prune, is replaced. */
async function start(client: EngineClient, name: string): Promise<void> {
  const request: EngineRequest = { method: 'POST', path: containerPath(name, '/start') };
  let answer = await client.call(request);
  if (isNetworkGone(answer) && (await isOnSharedNetwork(client, name))) {
    await reconnect(client, name);
    answer = await client.call(request);
  }
  if (answer.status >= 400) throw startFailure(name, answer);
}

function startFailure(name: string, answer: { status: number; body: unknown }): SkepError {
  const message = engineMessage(answer.body);
  if (answer.status === 404 && /no such container/i.test(message)) return missing(name);
  return new SkepError('runtime/start-failed', {
    message: `workload "${name}" could not be started: ${message}`,
  });
}

async function attach(client: EngineClient, name: string): Promise<Attachment> {
  // The engine upgrades for a stopped container too and then stays silent.
  const observed = await inspect(client, name);
  if (!observed) throw missing(name);
  if (observed.state === 'exited') {
    throw new SkepError('runtime/not-running', { message: `workload "${name}" is not running` });
  }
  const hijacked = await client.hijack({
    method: 'POST',
    path: containerPath(name, '/attach'),
    query: { stream: '1', stdin: '1', stdout: '1', stderr: '1' },
  });
  if ('status' in hijacked) throw refused(`attach to "${name}"`, hijacked);
  return attachment(hijacked);
}

const waitShape = z.object({ StatusCode: z.number() });

async function wait(client: EngineClient, name: string, signal: AbortSignal): Promise<number> {
  const observed = await inspect(client, name);
  if (!observed) throw missing(name);
  if (observed.exitCode !== undefined) return observed.exitCode;
  const condition = observed.state === 'created' ? 'next-exit' : 'not-running';
  const path = containerPath(name, '/wait');
  const answer = await client.call({ method: 'POST', path, query: { condition }, signal });
  if (answer.status === 404) throw missing(name);
  if (answer.status !== 200) throw refused(`wait for "${name}"`, answer);
  return waitShape.parse(answer.body).StatusCode;
}

async function stop(client: EngineClient, name: string, graceMs: number): Promise<void> {
  const query = { t: String(Math.max(0, Math.ceil(graceMs / 1000))) };
  const answer = await client.call({ method: 'POST', path: containerPath(name, '/stop'), query });
  if (answer.status >= 400 && answer.status !== 404) throw refused(`stop "${name}"`, answer);
}

async function remove(client: EngineClient, name: string): Promise<void> {
  const path = containerPath(name, '');
  const answer = await client.call({ method: 'DELETE', path, query: { force: '1', v: '1' } });
  // 409: another caller is removing it at this moment.
  if (answer.status === 409) {
    await client.call({
      method: 'POST',
      path: containerPath(name, '/wait'),
      query: { condition: 'removed' },
    });
  } else if (answer.status >= 400 && answer.status !== 404) throw refused(`remove "${name}"`, answer);
  await removeUnusedNetwork(client);
}

async function inspect(client: EngineClient, name: string): Promise<Observed | undefined> {
  const answer = await client.call({ method: 'GET', path: containerPath(name, '/json') });
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw refused(`inspect "${name}"`, answer);
  return observedContainer(answer.body);
}

async function list(client: EngineClient): Promise<readonly Observed[]> {
  const query = { all: '1', filters: filters({ label: [`${MANAGED_LABEL}=true`] }) };
  const answer = await client.call({ method: 'GET', path: '/containers/json', query });
  if (answer.status !== 200) throw refused('list containers', answer);
  const all = await Promise.all(listedIds(answer.body).map((id) => inspect(client, id)));
  return all.filter((one) => one !== undefined);
}

const containerPath = (name: string, rest: string) => `/containers/${encodeURIComponent(name)}${rest}`;

const missing = (name: string) =>
  new SkepError('runtime/no-such-workload', { message: `no workload "${name}"` });
