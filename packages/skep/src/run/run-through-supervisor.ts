import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from '../cli/context.ts';
import { openProgress } from '../print/progress.ts';
import { readEndpoint, MAX_LINE_CHARS, type Request } from '../supervisor/protocol.ts';
import { connect, exchange, type Connection } from '../supervisor/connect.ts';
import { wakeEarly } from '../supervisor/wake-early.ts';
import { startEvents, tellReady } from './tell-start.ts';

/**
 * `skep run` by a supervisor that is up and has everything ready (decision 0048): undefined when that is done. Else
 * nothing is made, and the command goes on by itself in the context that this answers with; a supervisor is on its way by
 * then. Loads as little as it can.
 */
export async function runThroughSupervisor(
  argv: readonly string[],
  context: Context,
): Promise<Context | undefined> {
  const connection = await connect(context).catch(() => undefined);
  if (connection) return (await runOver(connection, argv, context)) ? undefined : context;
  const woken = await wakeEarly(argv, context);
  return woken ? { ...context, woken } : context;
}

/** False, with nothing made, where the command has to do it itself. */
async function runOver(connection: Connection, argv: readonly string[], context: Context): Promise<boolean> {
  const { env, cwd, program, signal, terminal } = context;
  const request: Request = { op: 'run', argv: [...argv], env: definedOf(env), cwd };
  if (connection.version !== program.version || JSON.stringify(request).length > MAX_LINE_CHARS) {
    connection.socket.destroy();
    return false;
  }
  const progress = openProgress(terminal);
  const show = startEvents(progress, terminal);
  let told = '';
  let saved: { readonly name: string; readonly url: string } | undefined;
  try {
    const result = await exchange(connection, request, {
      signal,
      tell(event) {
        // What is told before belongs to a run that may yet have to be done here, and is told again then.
        if (saved === undefined && event.kind === 'told') told += event.text;
        if (event.kind === 'saved') {
          if (saved === undefined && told !== '') terminal.err(told);
          saved = event;
        }
        if (saved !== undefined) show(event);
      },
    });
    progress.end();
    if (saved === undefined) throw new SkepError('supervisor/protocol');
    tellReady(saved.name, saved.url, readEndpoint(result), terminal);
    return true;
  } catch (error) {
    progress.end();
    if (saved !== undefined) return await endOrGoOn(saved.name, error, context);
    if (hasCode(error, 'supervisor/not-here') || hasCode(error, 'supervisor/unreachable')) return false;
    if (told !== '') terminal.err(told);
    throw error;
  }
}

/** What was saved is started by the supervisor that comes after one that died, and removed after any other failure. */
async function endOrGoOn(name: string, error: unknown, context: Context): Promise<true> {
  const { launchAgain, undoStart } = await import('./launch-saved.ts');
  if (!hasCode(error, 'supervisor/unreachable')) {
    await undoStart(name, context);
    throw error;
  }
  await launchAgain(name, context);
  return true;
}

function definedOf(env: Context['env']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}
