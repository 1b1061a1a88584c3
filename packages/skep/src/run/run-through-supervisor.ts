import { isRecord } from '@skep/core/json/is-record.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from '../cli/context.ts';
import { connect, type Connection } from '../supervisor/connect.ts';
import { fromFailure } from '../supervisor/failure.ts';
import { MAX_LINE_CHARS } from '../supervisor/json-lines.ts';

/**
 * `skep run` by a supervisor that is up and has everything ready (docs/decisions/0048); false, with nothing made, where
 * this command has to do it itself. Loads what shows a start only while the server starts.
 */
export async function runThroughSupervisor(argv: readonly string[], context: Context): Promise<boolean> {
  const connection = await connect(context).catch(() => undefined);
  if (connection === undefined) return false;
  try {
    const name = await untilSaved(connection, argv, context);
    if (name === undefined) return false;
    const { launchBegun } = await import('./launch-begun.ts');
    await launchBegun(name, connection, context);
    return true;
  } finally {
    connection.socket.destroy();
  }
}

/** The name of the workload that is being started; undefined when the command has to do it itself. */
async function untilSaved(
  { socket, lines, version }: Connection,
  argv: readonly string[],
  { env, cwd, program, signal, terminal }: Context,
): Promise<string | undefined> {
  const request = `${JSON.stringify({ op: 'run', argv, env, cwd })}\n`;
  if (version !== program.version || request.length > MAX_LINE_CHARS) return undefined;
  const cut = (): void => void socket.destroy();
  signal.addEventListener('abort', cut, { once: true });
  try {
    signal.throwIfAborted();
    socket.write(request);
    let told = '';
    for (;;) {
      // What it had begun when it died nobody has seen, and is cleared away by the next attempt.
      const { done, value: line } = await lines.next().catch(() => ({ done: true, value: undefined }));
      signal.throwIfAborted();
      if (done === true) return undefined;
      const step = readStep(line);
      if (step.is === 'told') {
        told += step.text;
        continue;
      }
      if (step.is === 'failed' && step.error.code === 'supervisor/not-here') return undefined;
      if (told !== '') terminal.err(told);
      if (step.is === 'failed') throw step.error;
      return step.name;
    }
  } finally {
    signal.removeEventListener('abort', cut);
  }
}

type Step =
  | { readonly is: 'told'; readonly text: string }
  | { readonly is: 'saved'; readonly name: string }
  | { readonly is: 'failed'; readonly error: SkepError };

/** Without a schema, whose library takes longer to load than the answer takes. */
function readStep(line: unknown): Step {
  const { event, error } = isRecord(line) ? line : {};
  if (isRecord(event)) {
    const { kind, text, name } = event;
    if (kind === 'told' && typeof text === 'string') return { is: 'told', text };
    if (kind === 'saved' && typeof name === 'string') return { is: 'saved', name };
  }
  if (isRecord(error)) {
    const { code, message, hint, detail } = error;
    if (typeof code === 'string' && typeof message === 'string' && typeof hint === 'string') {
      return {
        is: 'failed',
        error: fromFailure({ code, message, hint, detail: isRecord(detail) ? detail : {} }),
      };
    }
  }
  throw new SkepError('supervisor/protocol');
}
