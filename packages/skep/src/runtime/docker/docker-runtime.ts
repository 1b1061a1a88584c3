import path from 'node:path';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Decision } from '../../egress/decision.ts';
import { closedMounts } from '../../permissions/confined-user.ts';
import { parseConfinedUser } from '../../permissions/confined-user-name.ts';
import type { Limits } from '../../permissions/limits.ts';
import { openToOthers } from '../../permissions/mounts.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import { forRequest, type RuntimeEnvironment } from '../environment.ts';
import type {
  Attachment,
  LogRequest,
  Observed,
  Prepared,
  PrepareRequest,
  Runtime,
  RuntimeInfo,
  SeenFiles,
  WorkloadSpec,
} from '../runtime.ts';
import { userFile } from '../user-file.ts';
import { checkWorkloadName, noSuchWorkload, notRunning } from '../workload-name.ts';
import { attachment } from './attach.ts';
import type { EngineClient } from './client.ts';
import {
  containerPath,
  hasOwnFiles,
  imageOf,
  inspect,
  isFromCurrentImage,
  removeContainer,
  seenFiles,
  workloadIds,
} from './containers.ts';
import { createWorkload } from './create-workload.ts';
import type { CredentialSources } from './credentials.ts';
import { engineInfo, otherArchitecture, unheldLimits } from './engine-info.ts';
import { containerEvents } from './events.ts';
import { refused } from './failure.ts';
import * as volumes from './data-volumes.ts';
import { gatewayTraffic, removeGateway, stopGateway } from './gateway/gateway-container.ts';
import { gatewayScript, type GatewayMaker } from './gateway/gateway-image.ts';
import { guard } from './gateway/isolated-workload.ts';
import { checkIsolation } from './gateway/isolation.ts';
import { GivenNetworks } from './given-networks.ts';
import { discardImage, findImage } from './images.ts';
import { containerLogs } from './logs.ts';
import { holderOf, stopHolder } from './network/holder.ts';
import { removeSharedNetwork } from './network/old-shared-network.ts';
import { removeSpare, unnamedNetworks } from './network/left-networks.ts';
import { saidBefore } from './network/spare-network.ts';
import { removeNetworks, type NetworkMaker } from './network/workload-networks.ts';
import type { ObservedImage } from './observed.ts';
import type { Chosen } from './provenance/verified-reference.ts';
import { ensureImage } from './pull.ts';
import { startContainer } from './start-container.ts';
import { sweepBuilds, sweepNetworks } from './sweep.ts';
import { untilEnded } from './until-ended.ts';

/** So long may an engine take to say what it is. */
const DESCRIBE_MS = 10_000;

/** The runtime port on a Docker-compatible engine. Nothing is connected before the first call. */
export class DockerRuntime implements Runtime {
  readonly kind = 'docker';
  readonly runsImages = true;
  readonly reachesLoopback = false;
  readonly keepsFiles = false;
  readonly keepsSecrets = true;
  readonly timesLogs = true;
  readonly limitsHeldBy = 'the engine';
  readonly #client: EngineClient;
  readonly #environment: RuntimeEnvironment;
  readonly #maker: NetworkMaker & GatewayMaker;
  /** What the engine said of itself when it was last asked who it is. */
  #described: Promise<unknown> | undefined;
  readonly #networks: GivenNetworks;

  /** `script` reads what a gateway runs from; it is there once the program was bundled. */
  constructor(client: EngineClient, environment: RuntimeEnvironment, script = gatewayScript) {
    this.#client = client;
    this.#environment = environment;
    this.#maker = { client, environment, script, randomId: environment.randomId };
    this.#networks = new GivenNetworks(this.#maker, (over) => this.#describeAhead(over));
  }

  async probe(signal: AbortSignal): Promise<RuntimeInfo> {
    return this.#read(await this.#describe(signal), signal);
  }

  async #read(body: unknown, signal?: AbortSignal): Promise<RuntimeInfo> {
    const { podman } = await this.#client.about(signal);
    return engineInfo(body, {
      endpoint: this.#client.endpoint,
      podman,
      platform: this.#environment.platform,
    });
  }

  async newest(source: PackageSource, signal: AbortSignal): Promise<string | undefined> {
    if (source.directory !== undefined) {
      const { readLocalContext } = await import('./local-context.ts');
      return (await readLocalContext(source.directory, signal)).version;
    }
    if (source.ecosystem === 'go') {
      const { newestGoVersion } = await import('../go/newest-version.ts');
      return newestGoVersion(this.#environment, source, signal).catch((error: unknown) => {
        if (hasCode(error, 'runtime/go-missing')) return undefined;
        throw error;
      });
    }
    const { newestVersion } = await import('../npm/newest-version.ts');
    return newestVersion(this.#environment, source, signal);
  }

  async prepare(request: PrepareRequest): Promise<Prepared> {
    const ensureBase = await this.#puller(request);
    const { source } = request;
    if (source.kind === 'package') {
      const { preparePackage } = await import('./prepare-package.ts');
      const [client, environment] = [this.#client, forRequest(this.#environment, request)];
      return preparePackage({ client, environment, source, request, ensureBase });
    }
    const { reference, doubt } = await this.#verified(source.reference, request);
    const { exposedPorts, volumes: declared, asRoot, architecture } = await ensureBase(reference);
    const other = architecture && otherArchitecture(await this.#description(), { reference, architecture });
    const doubts = [doubt, other].filter(Boolean);
    const told = doubts.length === 0 ? {} : { doubt: doubts.join('; ') };
    return { reference, ours: false, exposedPorts, volumes: declared, asRoot, ...told };
  }

  /** It takes an engine ten milliseconds to say. Fails with `runtime/engine-unreachable` for one that is silent. */
  async #description(): Promise<unknown> {
    return this.#described ?? this.#describe(AbortSignal.timeout(DESCRIBE_MS));
  }

  async #describe(signal: AbortSignal): Promise<unknown> {
    const asked = this.#askWhoItIs(signal);
    this.#described = asked;
    try {
      return await asked;
    } catch (error) {
      if (this.#described === asked) this.#described = undefined;
      throw error;
    }
  }

  async #askWhoItIs(signal: AbortSignal): Promise<unknown> {
    const { spares } = this.#environment;
    const said = spares && (await saidBefore(this.#client, spares, signal));
    return said ?? (await this.#info(signal));
  }

  async #info(signal: AbortSignal): Promise<unknown> {
    return (await this.#client.ask('describe itself', { path: '/info', signal })).body;
  }

  /** What cannot be read is no answer, and is asked for again. */
  async #describeAhead(over: AbortSignal): Promise<unknown> {
    const body = await this.#info(AbortSignal.any([over, AbortSignal.timeout(DESCRIBE_MS)]));
    await this.#read(body);
    return body;
  }

  async #verified(reference: string, request: PrepareRequest): Promise<Chosen> {
    if (request.verification === undefined) return { reference };
    const { verifiedReference } = await import('./provenance/verified-reference.ts');
    const environment = forRequest(this.#environment, request);
    const credentials = await this.#credentials(environment);
    return verifiedReference(reference, { client: this.#client, environment, credentials, request });
  }

  async dockerfile(request: PrepareRequest): Promise<string> {
    const { dockerfileOf } = await import('./prepare-package.ts');
    return dockerfileOf(request, forRequest(this.#environment, request));
  }

  async #puller(request: PrepareRequest): Promise<(reference: string) => Promise<ObservedImage>> {
    const { report, signal } = request;
    const environment = forRequest(this.#environment, request);
    const credentials = await this.#credentials(environment);
    // Images of packages are built for the engine itself.
    const wanted = request.source.kind === 'image' ? environment.env['DOCKER_DEFAULT_PLATFORM'] : '';
    const platform = wanted || undefined;
    return (reference) => ensureImage(this.#client, { reference, platform, credentials, report, signal });
  }

  async #credentials({ env, home }: RuntimeEnvironment): Promise<CredentialSources> {
    const dockerConfig = await userFile(
      path.join(env['DOCKER_CONFIG'] || path.join(home, '.docker'), 'config.json'),
    );
    return { env, ...(dockerConfig === undefined ? {} : { dockerConfig }) };
  }

  async has(reference: string): Promise<boolean> {
    return (await findImage(this.#client, reference)) !== undefined;
  }

  async pin({ name, reference }: Pick<WorkloadSpec, 'name' | 'reference'>): Promise<string> {
    return (await imageOf(this.#client, name)) ?? reference;
  }

  discard(reference: string): Promise<void> {
    return discardImage(this.#client, reference);
  }

  async sweep(keep: readonly string[] = []): Promise<void> {
    await sweepNetworks(this.#client, this.#environment);
    await sweepBuilds(this.#client, this.#environment, keep);
  }

  async cautions({ user, mounts, limits }: Pick<WorkloadSpec, 'user' | 'mounts' | 'limits'>) {
    return [
      ...(user === undefined ? [] : await closedMounts(parseConfinedUser(user), mounts)).map(
        (closed) => `the server ${closed}`,
      ),
      // Engines have nothing that keeps a server from it (decision 0234).
      ...(await openToOthers(mounts)).map(
        (source) =>
          `it may leave setuid programs in "${source}", which other users of this machine could run as the user it is in its image; mount a directory that only you can enter`,
      ),
      ...(limits === undefined ? [] : await this.#unlimited(limits)),
    ];
  }

  async #unlimited(limits: Limits): Promise<readonly string[]> {
    if (Object.values(limits).every((limit) => limit === 0)) return [];
    return unheldLimits(await this.#description(), limits);
  }

  dataPlaces(spec: Pick<WorkloadSpec, 'name' | 'data' | 'volumes' | 'labels'>): readonly string[] {
    return volumes.dataVolumes(spec).map(({ volume }) => `volume ${volume}`);
  }

  holdsData(name: string, owner: string, shared: readonly string[] = []): Promise<boolean> {
    return volumes.holdsData(this.#client, { name, owner, shared });
  }

  removeData(name: string, owner: string, shared: readonly string[] = []): Promise<void> {
    return volumes.removeVolumes(this.#client, { name, owner, shared });
  }

  /** On failure nothing that was made for it stays. */
  async create(spec: WorkloadSpec): Promise<void> {
    checkWorkloadName(spec.name);
    checkIsolation(spec);
    const place = this.#networks.place(spec);
    let isMade = false;
    try {
      await createWorkload(spec, place, { client: this.#client, environment: this.#environment });
      isMade = true;
    } finally {
      await this.#networks.settle(place, isMade);
    }
    await this.#networks.clearBehind(spec.name);
  }

  makeAhead(signal?: AbortSignal, asked?: () => void): Promise<void> {
    return this.#networks.makeAhead(signal, asked);
  }

  makeSpare(failed?: (error: unknown) => void): Promise<void> {
    return this.#networks.makeSpare(failed);
  }

  /** A container cannot change its image, and what was written inside goes with it. */
  async replace(spec: WorkloadSpec): Promise<boolean> {
    checkIsolation(spec);
    const lost = await hasOwnFiles(this.#client, spec.name);
    await this.remove(spec.name);
    await this.create(spec);
    return !lost;
  }

  isCurrent(name: string): Promise<boolean> {
    return isFromCurrentImage(this.#client, name);
  }

  /** A network that was removed behind its back is replaced; an isolated one begins once its gateway listens. */
  async start(name: string): Promise<void> {
    const before = await guard(this.#maker, name);
    try {
      await startContainer(this.#maker, name, before);
    } catch (error) {
      if (before.isolated) await removeGateway(this.#client, name);
      throw error;
    }
  }

  /** An engine starts a container once, and answers whoever asks meanwhile when that is done; its gateway is ours to start. */
  sharesStart({ isolation }: Pick<WorkloadSpec, 'isolation'>): boolean {
    return isolation === undefined;
  }

  async attach(name: string): Promise<Attachment> {
    // The engine upgrades for a stopped container too and then stays silent.
    const { state } = await this.#known(name);
    if (state === 'exited') throw notRunning(name);
    const query = { stream: '1', stdin: '1', stdout: '1', stderr: '1' };
    const path = containerPath(name, '/attach');
    const hijacked = await this.#client.hijack({ method: 'POST', path, query });
    if ('status' in hijacked) throw refused(`attach to "${name}"`, hijacked);
    return attachment(hijacked);
  }

  async wait(name: string, signal: AbortSignal): Promise<number> {
    return untilEnded(this.#client, await this.#known(name), signal);
  }

  async stop(name: string, graceMs: number): Promise<void> {
    const query = { t: String(Math.max(0, Math.ceil(graceMs / 1000))) };
    const path = containerPath(name, '/stop');
    const [, holder] = await Promise.all([
      this.#client.ask(`stop "${name}"`, { method: 'POST', path, query }, 304, 404),
      holderOf(this.#client, name),
    ]);
    await (holder === undefined ? stopGateway(this.#client, name) : stopHolder(this.#client, holder));
  }

  async remove(name: string): Promise<void> {
    const [empty, unnamed] = await Promise.all([
      volumes.emptyVolumes(this.#client, name),
      unnamedNetworks(this.#client, name),
    ]);
    const status = await removeContainer(this.#client, name, `remove "${name}"`);
    await volumes.removeVolumesNamed(this.#client, empty, 'stays');
    // What was left of one that is gone is this user's by its own label alone.
    const owner = status === 404 ? this.#environment.owner : undefined;
    await removeGateway(this.#client, name, owner);
    // Its holder may be on a network that names the workload by now.
    if (unnamed.spare) await removeSpare(this.#client, unnamed.spare);
    await this.#networks.clearBehind(name, unnamed.spare);
    if (status === 404) this.#environment.spares?.lookAgain();
    await removeNetworks(this.#client, name, owner);
    if (unnamed.shared) await removeSharedNetwork(this.#client);
  }

  async inspect(name: string): Promise<Observed | undefined> {
    const seen = await inspect(this.#client, name);
    if (seen) this.#networks.see(seen);
    return seen;
  }

  async list(): Promise<readonly Observed[]> {
    const all = await Promise.all((await workloadIds(this.#client)).map((id) => this.inspect(id)));
    return all.filter((one) => one !== undefined);
  }

  traffic(name: string): Promise<readonly Decision[]> {
    return gatewayTraffic(this.#client, name);
  }

  seen(name: string): Promise<SeenFiles> {
    return seenFiles(this.#client, name);
  }

  logs(name: string, request: LogRequest) {
    return containerLogs(this.#client, name, request);
  }

  events(signal: AbortSignal) {
    return containerEvents(this.#client, signal);
  }

  async #known(name: string): Promise<Observed> {
    const observed = await this.inspect(name);
    if (!observed) throw noSuchWorkload(name);
    return observed;
  }
}
