import type { Left } from '@skep/core/command/command.ts';
import { unlessHeld } from '@skep/core/files/lock.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from '../cli/context.ts';
import { openProgress } from '../print/progress.ts';
import { Spares } from '../runtime/spares.ts';
import { findRunConfig } from '../run-config/file.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import {
  readEndpoint,
  MAX_LINE_CHARS,
  type Request,
  type ShownCard,
  type StartEvent,
} from '../supervisor/protocol.ts';
import { connect, exchange, type Connection } from '../supervisor/connect.ts';
import { wakeEarly } from '../supervisor/wake-early.ts';
import { lockName } from '../workloads/name-lock.ts';
import { getsNetwork } from './gets-network.ts';
import { startEvents, tellReady } from './tell-start.ts';

/** A workload whose run configuration is saved, by a supervisor for this command. */
type Saved = Pick<Extract<StartEvent, { readonly kind: 'saved' }>, 'name' | 'url'>;

/** Longer than a supervisor that ends takes to let go of what it carries out. */
const LETTING_GO_MS = 10_000;

/**
 * `skep run` by a supervisor that is up and has everything ready (decision 0048): undefined when that is done. Else
 * nothing is made, and the command goes on by itself in the context that this answers with; a supervisor is on its way by
 * then. Loads as little as it can.
 */
export async function runThroughSupervisor(
  argv: readonly string[],
  context: Context,
): Promise<Left<Context> | undefined> {
  const connection = await connect(context).catch(() => undefined);
  if (connection) return (await runOver(connection, argv, context)) ? undefined : left(context);
  const woken = await wakeEarly(argv, context);
  if (woken === undefined) return left(context);
  const spares = new Spares(context);
  const host = { ...context, woken, spares };
  const over = new AbortController();
  if (await getsNetwork(argv, context)) await (await import('./ask-early.ts')).askEarly(host, over.signal);
  return left(host, async () => {
    woken.lock.release();
    over.abort();
    // What was made ahead and not used; the next one that makes something ahead removes what is left.
    await spares.close().catch(() => {});
  });
}

function left(host: Context, end = async (): Promise<void> => {}): Left<Context> {
  return { host, [Symbol.asyncDispose]: end };
}

/** False, with nothing made, where the command has to do it itself. */
async function runOver(connection: Connection, argv: readonly string[], context: Context): Promise<boolean> {
  const { env, cwd, program, signal, terminal } = context;
  const request: Request = { op: 'run', argv: [...argv], env: definedOf(env), cwd };
  const isOther = connection.version !== program.version || context.lacksGroups(connection.process);
  if (isOther || JSON.stringify(request).length > MAX_LINE_CHARS) {
    connection.socket.destroy();
    return false;
  }
  const progress = openProgress(terminal);
  const show = startEvents(progress, terminal);
  let told = '';
  let card: ShownCard = [];
  let saved: Saved | undefined;
  try {
    const result = await exchange(connection, request, {
      signal,
      tell(event) {
        // What is told before belongs to a run that may yet have to be done here, and is told again then.
        if (saved === undefined && event.kind === 'told') told += event.text;
        if (event.kind === 'card') card = event.rows;
        if (event.kind === 'saved') {
          if (saved === undefined && told !== '') terminal.err(told);
          saved = event;
        }
        if (saved !== undefined) show(event);
      },
    });
    progress.end();
    if (saved === undefined) throw new SkepError('supervisor/protocol');
    tellReady({ ...saved, endpoint: readEndpoint(result), card }, terminal);
    return true;
  } catch (error) {
    progress.end();
    if (saved !== undefined) return await endOrGoOn(saved, error, context);
    if (hasCode(error, 'supervisor/not-here') || hasCode(error, 'supervisor/unreachable')) return false;
    if (told !== '') terminal.err(told);
    throw error;
  }
}

/**
 * What was saved is started by the supervisor that comes after one that died, and removed after any other failure: under
 * the lock of its name, which whoever carried it out has let go, and unless another command has the name by now.
 */
async function endOrGoOn(saved: Saved, error: unknown, context: Context): Promise<true> {
  const { launchAgain, undoStart } = await import('./launch-saved.ts');
  // Whether or not the person interrupts: what was begun is undone.
  const { signal } = new AbortController();
  using lock = await unlessHeld(lockName(saved.name, { ...context, signal, waitMs: LETTING_GO_MS }));
  const died = hasCode(error, 'supervisor/unreachable');
  if (lock && (await isStillSaved(saved, context))) {
    if (died) await launchAgain(saved.name, context);
    else await undoStart(saved.name, context);
  } else if (died) {
    throw new SkepError('run/name-taken', {
      message: `the supervisor ended while it started "${saved.name}", and another command has the name by now`,
      cause: error,
    });
  }
  if (!died) throw error;
  return true;
}

/** Another command that has taken the name has saved its own, with another port. */
async function isStillSaved({ name, url }: Saved, { places }: Context): Promise<boolean> {
  const config = await findRunConfig(places, name);
  return config === undefined || workloadUrl(config) === url;
}

function definedOf(env: Context['env']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}
