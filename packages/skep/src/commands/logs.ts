import { access } from 'node:fs/promises';
import { ifThere } from '@skep/core/files/errno.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { parseDuration } from '@skep/core/time/duration.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { openRuntime } from '../cli/open-runtime.ts';
import { refusedHosts } from '../egress/refused.ts';
import { printableLog } from '../print/printable-log.ts';
import { toTable, type Column } from '../print/table.ts';
import { findRunConfig, loadRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { LogRequest, Runtime } from '../runtime/runtime.ts';
import { followFile } from '../runtime/sandbox/log-file.ts';
import { workloadLogPath } from '../supervisor/remove-workload.ts';
import { pruneLogs } from './prune-logs.ts';
import { refusedItems, shownHost } from '../cli/refused-to.ts';
import { toJsonText } from '../workloads/to-json.ts';

const POLL_MS = 100;
/** Removes logs, unless a workload is called that. */
const PRUNE = 'prune';

export const logs = defineCommand({
  usage: 'skep logs [flags] NAME',
  summary: 'Show what a server wrote',
  description: ['skep logs prune removes the log files of servers that are no more.'],
  positionals: [{ name: 'NAME', required: true }],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'follow', 'Keep printing what is written', { short: 'f', default: false }),
      flag('int', 'tail', 'Only the last lines', { placeholder: 'lines', min: 0 }),
      flag('string', 'since', 'Only what is newer: a duration such as 10m, or an RFC 3339 time', {
        placeholder: 'time',
        excludes: ['proxy'],
      }),
      flag('bool', 'denied', 'What its gateway refused to let through, instead of what it wrote', {
        default: false,
        excludes: ['proxy', 'follow', 'tail', 'since', 'timestamps'],
      }),
      flag('bool', 'proxy', "The proxy's log instead of the server's", { short: 'p', default: false }),
    ]),
    ...settingsOf({ group: 'Output' }, [
      flag('bool', 'timestamps', 'Put its time before each line', {
        short: 't',
        default: false,
        excludes: ['proxy'],
      }),
    ]),
    ...formatSettings,
    ...commonSettings,
  ],
  async run({ values, positionals: [name = ''] }, context) {
    const { follow, tail, timestamps } = values;
    const since = values.since === undefined ? undefined : sinceTime(values.since, context.clock.now());
    if (name === PRUNE && (await findRunConfig(context.places, name)) === undefined)
      return pruneLogs(context);
    const config = await loadRunConfig(context.places, name);
    const request = { follow, tail, since, timestamps, signal: context.signal };
    const asJson = values.format === 'json';
    if (asJson && !values.denied) {
      throw new SkepError('usage/conflict', {
        message: '--format json needs --denied: what a server wrote is printed as it is',
        hint: 'add --denied',
      });
    }
    if (values.proxy) return proxyLog(name, request, context);
    if (values.denied) return deniedConnections(config, asJson, context);
    const runtime = await openRuntime(context, { reference: config.runtime, signal: context.signal });
    if ((await runtime.inspect(name)) === undefined) {
      throw new SkepError('workload/not-found', {
        message: `the server of "${name}" was not found on the ${runtime.kind} runtime`,
        hint: `see why with skep logs --proxy ${name}`,
      });
    }
    if ((timestamps || since !== undefined) && !runtime.timesLogs) {
      throw new SkepError('usage/not-available', {
        message: `the ${runtime.kind} keeps no time of what "${name}" wrote`,
        hint: `leave out ${timestamps ? '--timestamps' : '--since'}; the proxy's log has times: skep logs --proxy ${name}`,
      });
    }
    const isTalk = config.transport === 'stdio';
    await print(isTalk ? talk(runtime, name, request) : whatWasWritten(runtime, name, request), context);
  },
});

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/iu;

/** Milliseconds since 1970 of a time, or of a duration before now. Fails with `usage/invalid-value`. */
function sinceTime(text: string, now: number): number {
  const time = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  const ago = durationOf(text);
  if (ago !== undefined && ago >= 0) return now - ago;
  throw new SkepError('usage/invalid-value', {
    message: `invalid value "${text}" for --since`,
    hint: 'give a duration, such as 10m or 1h30m, or a time, such as 2026-01-02T15:04:05Z',
  });
}

function durationOf(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch (error) {
    if (!hasCode(error, 'usage/invalid-value')) throw error;
    return undefined;
  }
}

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
  const { tail, ...all } = wanted;
  const stderr = async function* (request: LogRequest): AsyncGenerator<Uint8Array> {
    for await (const { stream, bytes } of runtime.logs(name, request)) if (stream === 'stderr') yield bytes;
  };
  if (tail === undefined) {
    yield* stderr(all);
    return;
  }
  yield lastLinesOf(await Array.fromAsync(stderr({ ...all, follow: false })), tail);
  if (wanted.follow) yield* stderr({ ...all, tail: 0 });
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

const DENIED_COLUMNS: readonly Column[] = [
  { title: 'LAST', whole: true },
  { title: 'COUNT', whole: true },
  { title: 'HOST', whole: true },
  { title: 'VIA', optional: 1 },
  { title: 'WHY', least: 20 },
];

/** Each host that was refused, the most frequent first; as data a list, which may be empty. */
async function deniedConnections(config: RunConfig, asJson: boolean, context: Context): Promise<void> {
  const { name, runtime: reference } = config;
  if (config.isolate_network !== true) {
    throw new SkepError('usage/not-available', {
      message: `"${name}" is not isolated, so nothing is refused to it`,
      hint: `isolate it with skep deny ${name} --isolate-network`,
    });
  }
  const runtime = await openRuntime(context, { reference, signal: context.signal });
  const refused = refusedHosts(await runtime.traffic(name), config);
  if (asJson) return context.terminal.out(toJsonText(refusedItems(refused)));
  if (refused.length === 0) return context.terminal.err(`nothing was refused to ${name}\n`);
  const rows = refused.map((one) => [one.time, `${one.count}`, shownHost(one), one.via, one.reason ?? '-']);
  context.terminal.out(toTable(DENIED_COLUMNS, rows, context.terminal));
}

async function proxyLog(name: string, request: LogRequest, context: Context): Promise<void> {
  const path = workloadLogPath(context.places, name);
  const isThere = await ifThere(access(path).then(() => true));
  if (!isThere) return context.terminal.err(`workload "${name}" has no proxy log yet\n`);
  const over = (): Promise<boolean> => Promise.resolve(false);
  await print(followFile(path, { ...request, over, pollMs: POLL_MS }), context);
}
