import { access } from 'node:fs/promises';
import { ifThere } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { openRuntime } from '../cli/open-runtime.ts';
import { printableLog } from '../print/printable-log.ts';
import { loadRunConfig } from '../run-config/file.ts';
import type { LogRequest, Runtime } from '../runtime/runtime.ts';
import { followFile } from '../runtime/sandbox/log-file.ts';
import { workloadLogPath } from '../supervisor/remove-workload.ts';

const POLL_MS = 100;

export const logs = defineCommand({
  usage: 'skep logs [flags] NAME',
  summary: 'Show what a server wrote',
  positionals: [{ name: 'NAME', required: true }],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'follow', 'Keep printing what is written', { short: 'f', default: false }),
      flag('int', 'tail', 'Only the last lines', { placeholder: 'lines', min: 0 }),
      flag('bool', 'proxy', "The proxy's log instead of the server's", { short: 'p', default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = ''] }, context) {
    const config = await loadRunConfig(context.places, name);
    const { follow, tail } = values;
    const request = { follow, tail, signal: context.signal };
    if (values.proxy) return proxyLog(name, request, context);
    const runtime = await openRuntime(context, { reference: config.runtime, signal: context.signal });
    if ((await runtime.inspect(name)) === undefined) {
      throw new SkepError('workload/not-found', {
        message: `the server of "${name}" was not found on the ${runtime.kind} runtime`,
        hint: `see why with skep logs --proxy ${name}`,
      });
    }
    const isTalk = config.transport === 'stdio';
    await print(isTalk ? talk(runtime, name, request) : whatWasWritten(runtime, name, request), context);
  },
});

/** Everything a server wrote. */
async function* whatWasWritten(
  runtime: Runtime,
  name: string,
  request: LogRequest,
): AsyncGenerator<Uint8Array> {
  for await (const { bytes } of runtime.logs(name, request)) yield bytes;
}

/** The stderr of a stdio server: its stdout is the protocol. An engine counts last lines over both. */
async function* talk(runtime: Runtime, name: string, wanted: LogRequest): AsyncGenerator<Uint8Array> {
  const { follow, tail, signal } = wanted;
  const stderr = async function* (request: LogRequest): AsyncGenerator<Uint8Array> {
    for await (const { stream, bytes } of runtime.logs(name, request)) if (stream === 'stderr') yield bytes;
  };
  if (tail === undefined) {
    yield* stderr({ follow, signal });
    return;
  }
  yield lastLinesOf(await Array.fromAsync(stderr({ follow: false, signal })), tail);
  if (follow) yield* stderr({ follow, tail: 0, signal });
}

/** The last `count` lines; a last line without its end counts. */
function lastLinesOf(chunks: readonly Uint8Array[], count: number): Uint8Array {
  const all = Buffer.concat(chunks);
  let start = all.length;
  for (let lines = 0; lines < count && start > 0; lines += 1) start = lineStart(all, start - 1);
  return all.subarray(start);
}

/** Where the line begins that ends at `end`. */
const lineStart = (all: Buffer, end: number): number => (end === 0 ? 0 : all.lastIndexOf('\n', end - 1) + 1);

async function print(
  written: AsyncIterable<Uint8Array>,
  { terminal, signal }: Pick<Context, 'terminal' | 'signal'>,
): Promise<void> {
  const decoder = new TextDecoder();
  try {
    for await (const bytes of written) {
      const text = decoder.decode(bytes, { stream: true });
      terminal.out(terminal.liveOut ? printableLog(text) : text);
    }
  } catch (error) {
    // Ctrl-C is how following ends.
    if (!signal.aborted) throw error;
  }
}

async function proxyLog(name: string, request: LogRequest, context: Context): Promise<void> {
  const path = workloadLogPath(context.places, name);
  const isThere = await ifThere(access(path).then(() => true));
  if (!isThere) return context.terminal.err(`workload "${name}" has no proxy log yet\n`);
  const over = (): Promise<boolean> => Promise.resolve(false);
  await print(followFile(path, { ...request, over, pollMs: POLL_MS }), context);
}
