import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { LineReader } from '@skep/proxy/backend/stdio/line-reader.ts';
import { Bridge } from '../bridge/bridge.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { planStart } from '../plan/plan-start.ts';
import { carryOut, surroundingsOf } from '../run/carry-out.ts';
import { shouldRun } from '../supervisor/state.ts';
import { shownUrl, viewWorkload, type WorkloadView } from '../workloads/view.ts';

export const proxyStdio = defineCommand({
  usage: 'skep proxy stdio NAME',
  summary: 'Speak with a server over standard input and output, for MCP clients that start a command',
  description: [
    'The command is the same on every machine: directories and keys of the server stay with the workload. A stopped server is started. Standard output carries MCP messages and nothing else; the session ends when standard input does.',
  ],
  positionals: [{ name: 'NAME', required: true }],
  settings: [...commonSettings],
  async run({ positionals: [name = ''] }, context) {
    const { streams, clock, terminal, signal } = context;
    const silent = withoutOutput(context);
    const url = await locate(name, silent, true);
    if (!streams) throw new SkepError('internal/bug', { message: 'nobody speaks to this command' });
    const { input, output } = streams();
    const warn = (text: string): void => terminal.err(`Warning: ${printable(text)}\n`);
    const write = writerTo(output);
    const bridge = new Bridge(url, { locate: () => locate(name, silent, false), write, warn, clock });
    const lines: string[] = [];
    const reader = new LineReader({
      line: (line) => void lines.push(line),
      tooLong: () => warn('a line of the client was too long, and is left out'),
    });
    async function carry(): Promise<void> {
      for await (const chunk of input) {
        reader.push(Buffer.from(chunk));
        for (const line of lines.splice(0)) await bridge.take(line);
      }
      await bridge.finish();
    }
    const over = signal.aborted ? Promise.resolve() : once(signal, 'abort');
    try {
      await Promise.race([carry(), bridge.failed, over]);
    } finally {
      await bridge.close();
      input.destroy();
    }
  },
});

/** Where the workload's own proxy is, with a supervisor that hosts it; `mayStart` starts one that does not run. */
async function locate(name: string, context: Context, mayStart: boolean): Promise<URL> {
  await ensureHosted(context);
  const view = await find(name, context);
  const runs = view.status !== 'unknown' && shouldRun(view.status);
  if (!runs && !mayStart) {
    throw new SkepError('run/ended', {
      message: `"${name}" is ${view.status}`,
      hint: `start it with skep start ${name}`,
    });
  }
  if (runs) return new URL(view.url);
  const request = { name, isRunning: false, foreground: false, limits: {} };
  await carryOut(await planStart(request, surroundingsOf(context)), context);
  return new URL((await find(name, context)).url);
}

/** Fails with `usage/conflict` for an SSE proxy, and with `workload/not-found`, and says how a server of the catalogue becomes one. */
async function find(name: string, context: Context): Promise<WorkloadView> {
  try {
    const view = await viewWorkload(name, context);
    if (view.proxyMode !== 'sse') return view;
    throw new SkepError('usage/conflict', {
      message: `the proxy of "${name}" speaks HTTP with SSE, which this command does not`,
      hint: `connect the client to ${shownUrl(view)}`,
    });
  } catch (error) {
    if (!hasCode(error, 'workload/not-found')) throw error;
    const isKnown = await catalogOf(context)
      .then((catalog) => catalog.find(name, context.signal))
      .then(Boolean, () => false);
    const hint = isKnown ? `run it once: skep run ${name}` : 'see the names with skep list --all';
    throw new SkepError('workload/not-found', { message: error.message, hint });
  }
}

/** Whatever a start says goes to standard error, and nobody is asked: the client is on the other side. */
function withoutOutput(context: Context): Context {
  const { ask: _ask, confirm: _confirm, terminal, ...rest } = context;
  return { ...rest, terminal: { ...terminal, out: (text) => terminal.err(text), interactive: false } };
}

/** Writes whole lines; resolves when the reader has kept up. */
function writerTo(output: Writable): (line: string) => Promise<void> {
  let drained: Promise<unknown> | undefined;
  return async (line) => {
    if (output.write(`${line}\n`)) return;
    drained ??= once(output, 'drain').finally(() => (drained = undefined));
    await drained;
  };
}
