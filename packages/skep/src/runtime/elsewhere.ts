import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ELSEWHERE } from '../settings/identity.ts';
import type {
  Observed,
  Prepared,
  PrepareRequest,
  Runtime,
  RuntimeInfo,
  SeenFiles,
  WorkloadSpec,
} from './runtime.ts';

/**
 * What servers elsewhere run on, as far as this machine is concerned: nothing is prepared, started or removed, so that they
 * live as every workload does (docs/behaviour/run.md#remote-servers). Keeps nothing; each process has its own.
 */
export class Elsewhere implements Runtime {
  readonly kind = ELSEWHERE;
  readonly runsImages = false;
  readonly reachesLoopback = false;
  readonly keepsFiles = false;
  readonly keepsSecrets = false;
  readonly timesLogs = false;
  readonly limitsHeldBy = 'whoever runs the server';
  /** Without its secrets. */
  readonly #hosted = new Map<string, Pick<WorkloadSpec, 'reference' | 'labels'>>();

  async probe(): Promise<RuntimeInfo> {
    return { kind: ELSEWHERE, id: ELSEWHERE, version: '', endpoint: '' };
  }

  async prepare({ source }: PrepareRequest): Promise<Prepared> {
    if (source.kind !== 'image') throw new SkepError('internal/bug');
    return { reference: source.reference, ours: false, exposedPorts: [] };
  }

  async newest(): Promise<undefined> {}

  async has(): Promise<boolean> {
    return true;
  }

  async pin({ reference }: Pick<WorkloadSpec, 'reference'>): Promise<string> {
    return reference;
  }

  async discard(): Promise<void> {}

  async sweep(): Promise<void> {}

  async cautions(): Promise<readonly string[]> {
    return [];
  }

  dataPlaces(): readonly string[] {
    return [];
  }

  async holdsData(): Promise<boolean> {
    return false;
  }

  async removeData(): Promise<void> {}

  async create({ name, reference, labels }: WorkloadSpec): Promise<void> {
    this.#hosted.set(name, { reference, labels });
  }

  async replace(spec: WorkloadSpec): Promise<boolean> {
    await this.create(spec);
    return true;
  }

  async isCurrent(): Promise<boolean> {
    return true;
  }

  async start(): Promise<void> {}

  async attach(): Promise<never> {
    throw new SkepError('internal/bug');
  }

  /** It ends only for whoever lets go of it. */
  async wait(_name: string, signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new SkepError('runtime/aborted')), { once: true });
    });
  }

  async stop(name: string): Promise<void> {
    this.#hosted.delete(name);
  }

  async remove(name: string): Promise<void> {
    this.#hosted.delete(name);
  }

  async inspect(name: string): Promise<Observed | undefined> {
    const spec = this.#hosted.get(name);
    if (spec === undefined) return undefined;
    return { name, state: 'running', ...spec, createdAt: new Date(0) };
  }

  async list(): Promise<readonly Observed[]> {
    return [];
  }

  async *logs(): AsyncGenerator<never> {}

  async traffic(): Promise<readonly never[]> {
    return [];
  }

  async seen(): Promise<SeenFiles> {
    return { paths: new Map(), complete: true, unseen: [] };
  }

  async *events(): AsyncGenerator<never> {}
}
