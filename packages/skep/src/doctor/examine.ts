import { SkepError } from '@skep/core/errors/skep-error.ts';
import { connectRuntime } from '../cli/open-runtime.ts';
import type { Context } from '../cli/context.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Check, Finding, Inquiry } from './check.ts';

/** A check with what came of it. */
export interface Examined extends Finding {
  readonly check: Check;
  /** What was mended, and is no more. */
  readonly fixed?: string;
}

interface Examination {
  /** How long each check may take. */
  readonly timeoutMs: number;
  /** Mends what can be mended safely, one after the other, and looks again. */
  readonly fix: boolean;
}

/** Runs checks at once; those that do not apply here are left out. Fails only with the reason of the context's signal. */
export async function examine(
  checks: readonly Check[],
  context: Context,
  { timeoutMs, fix }: Examination,
): Promise<readonly Examined[]> {
  let connecting: Promise<Runtime> | undefined;
  const look = async (check: Check): Promise<Examined | undefined> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([context.signal, timeout]);
    const runtime = (): Promise<Runtime> => (connecting ??= connectRuntime(context, undefined));
    const finding = await inTime(check, { context, signal, runtime }, timeoutMs);
    context.signal.throwIfAborted();
    return finding && { ...finding, check };
  };
  const found = (await Promise.all(checks.map(look))).filter((one) => one !== undefined);
  if (!fix) return found;
  const after: Examined[] = [];
  for (const one of found) after.push(await mend(one, look));
  return after;
}

async function mend(one: Examined, look: (check: Check) => Promise<Examined | undefined>): Promise<Examined> {
  if (one.fix === undefined) return one;
  try {
    const fixed = await one.fix();
    return { ...((await look(one.check)) ?? one), fixed };
  } catch (error) {
    return { ...one, text: `${one.text}; it could not be mended: ${messageOf(error)}` };
  }
}

/** What a check found, or that it did not come to an end. */
async function inTime(check: Check, inquiry: Inquiry, timeoutMs: number): Promise<Finding | undefined> {
  const { signal } = inquiry;
  const over = Promise.withResolvers<Finding>();
  const giveUp = (): void =>
    over.resolve({ verdict: 'broken', text: `no answer in ${Math.ceil(timeoutMs / 1000)} s` });
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  try {
    return await Promise.race([check.look(inquiry), over.promise]);
  } catch (error) {
    // A check that fails by itself has found something, whatever it is.
    return { verdict: 'broken', text: messageOf(error) };
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof SkepError) return error.message;
  return error instanceof Error ? error.message : 'unexpected failure';
}
