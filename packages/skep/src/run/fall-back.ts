import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import type { NewWorkload } from '../plan/plan.ts';
import { planRun } from '../plan/plan-run.ts';
import type { RunRequest } from '../plan/planned-run.ts';
import { NEEDS_NO_IMAGES } from '../settings/identity.ts';
import { carryOut, surroundingsOf } from './carry-out.ts';

/**
 * Carries a run out. Where the engine cannot reach its image registry, and nobody named a runtime, the sandbox takes its
 * place if it can run the same server (docs/behaviour/run.md#finding-the-engine); where somebody did, the error names it.
 */
export async function carryOutOrFallBack(
  plan: NewWorkload,
  request: RunRequest,
  context: Context,
): Promise<void> {
  try {
    await carryOut(plan, context);
  } catch (error) {
    const { runtime: named } = request.values;
    if (!hasCode(error, 'runtime/image-not-found') || error.detail['unreached'] !== true) throw error;
    const inSandbox = await planInSandbox(request, context);
    if (inSandbox === undefined) throw error;
    if (named !== undefined) {
      throw new SkepError(error.code, {
        message: error.message,
        hint: `${error.hint}, or run it without an image: --runtime ${NEEDS_NO_IMAGES}`,
        detail: error.detail,
        cause: error,
      });
    }
    const why = `the engine cannot reach its image registry (--runtime ${plan.runtime.kind} insists on the engine)`;
    context.terminal.err(`Warning: ${printable(plan.name)} runs in the ${NEEDS_NO_IMAGES}, because ${why}\n`);
    await carryOut(inSandbox, context);
  }
}

/** Undefined where there is no sandbox, or it cannot run the server. Planning makes nothing. */
async function planInSandbox(request: RunRequest, context: Context): Promise<NewWorkload | undefined> {
  try {
    const plan = await planRun(request, surroundingsOf(context, NEEDS_NO_IMAGES));
    const { source } = plan.preparation;
    return source.kind === 'package' ? plan : undefined;
  } catch (error) {
    if (error instanceof SkepError && error.code !== 'run/cancelled') return undefined;
    throw error;
  }
}

/** The context with answers that are given once: what is planned again asks nothing again. */
export function rememberAnswers(context: Context): Context {
  const { ask, confirm } = context;
  return {
    ...context,
    ...(ask && { ask: remember(ask, ({ name }) => name) }),
    ...(confirm && { confirm: remember(confirm, (question) => question) }),
  };
}

function remember<Question, Answer>(
  ask: (question: Question) => Promise<Answer>,
  keyOf: (question: Question) => string,
): (question: Question) => Promise<Answer> {
  const given = new Map<string, Answer>();
  return async (question) => {
    const key = keyOf(question);
    const answer = given.has(key) ? (given.get(key) as Answer) : await ask(question);
    given.set(key, answer);
    return answer;
  };
}
