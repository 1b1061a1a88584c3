import type { SeenFiles, WorkloadSpec } from '../../runtime.ts';
import { firstInside } from '../confine.ts';
import type { Environment } from '../../find-program.ts';
import type { Launch } from '../launch.ts';
import { makeTrace } from '../pipes.ts';
import { findTracer, Watch, type Tracing } from './tracer.ts';

/** What one process sees of the workloads that learn and that it has started. */
export class Watches {
  readonly #env: Environment;
  readonly #watches = new Map<string, Watch>();

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Why what a workload that learns does with files will not be seen; empty for all others. */
  cautions({ learns }: Pick<WorkloadSpec, 'learns'>): readonly string[] {
    const tracer = learns === true ? findTracer(this.#env) : undefined;
    if (tracer === undefined || !('missing' in tracer)) return [];
    return [`what it does with files cannot be seen, because ${tracer.missing}`];
  }

  /** Watches one start, if the workload learns and can be watched. */
  async begin(starting: Pick<Launch, 'spec' | 'command' | 'state' | 'bubblewrap' | 'places'>) {
    const { spec, command, state, bubblewrap, places } = starting;
    if (spec.learns !== true) return undefined;
    const tracer = findTracer(this.#env);
    const watch = this.#watches.get(spec.name) ?? new Watch('missing' in tracer ? tracer.missing : undefined);
    this.#watches.set(spec.name, watch);
    if ('missing' in tracer) return undefined;
    await makeTrace(places);
    const program = firstInside(bubblewrap, command);
    const own = (await state).map(({ target }) => target);
    const tracing: Tracing = watch.begin(tracer.program, { spec, program, fifo: places.trace, own });
    return tracing;
  }

  /** See `Runtime.seen`. */
  async seen(name: string): Promise<SeenFiles> {
    return (this.#watches.get(name) ?? new Watch('nobody watched it')).seen();
  }
}
