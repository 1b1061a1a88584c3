import type { RuntimeEnvironment } from '../environment.ts';
import type { Runtime } from '../runtime.ts';
import { connectEngine } from './find-engine.ts';
import { makeSpare } from './network/spare-network.ts';

/**
 * The engine of a new workload before what runs workloads is loaded: all it does is to make something ahead, and nothing
 * where another kind of runtime was named. Once `over` aborts, one that has not answered is not waited for.
 */
export function earlyEngine(environment: RuntimeEnvironment, over: AbortSignal): Pick<Runtime, 'makeAhead'> {
  const { env, owner, randomId, spares } = environment;
  const named = env['SKEP_RUNTIME'] || 'docker';
  if (named !== 'docker' || spares === undefined) return {};
  return {
    async makeAhead(signal, asked) {
      const engine = await connectEngine(environment, { signal: over });
      if (!('found' in engine)) return;
      await makeSpare({ client: engine.found, randomId, signal, asked }, spares, owner);
    },
  };
}
