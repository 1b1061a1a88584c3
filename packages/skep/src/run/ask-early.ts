import type { Context } from '../cli/context.ts';
import { runtimeEnvironment } from '../cli/runtime-environment.ts';
import { earlyEngine } from '../runtime/docker/early-engine.ts';
import { makeAhead } from './make-ahead.ts';

/**
 * Has an engine make a network before what plans a run is loaded (decision 0464); resolves as `makeAhead` does. What goes
 * wrong here the plan meets again, and tells. Once `over` aborts, an engine that has not answered yet is not waited for.
 */
export const askEarly = (context: Context, over: AbortSignal): Promise<void> =>
  makeAhead(earlyEngine(runtimeEnvironment(context), over), context);
