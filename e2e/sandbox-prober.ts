// Run in a process of its own, also as another user than the tests: starts the probe server in the sandbox, calls it, and
// prints what each call gave as one JSON line; `outside/read` reads from a port of this machine, what begins with
// `outside` tells what is to be seen from here. Arguments: a directory of this user's, changes to the spec, the calls.
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import { ProbeCaller, ProbeError } from '@skep/cli/runtime/contract/probe-caller.ts';
import type { WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { treeManifest } from '@skep/cli/runtime/sandbox/package-trees.ts';
import { usageOf } from '@skep/cli/runtime/sandbox/usage.ts';
import { openRuntime } from './runtimes.ts';

const [directory = '', changes = '{}', calls = '[]'] = process.argv.slice(2);
const reference = 'npm-skep-probe@1.0.0-0123456789ab';
const tree = path.join(directory, 'cache/packages', reference);
mkdirSync(path.join(tree, 'node_modules/skep-probe'), { recursive: true });
const script = path.join(import.meta.dirname, 'fixtures/probe-server.mjs');
cpSync(script, path.join(tree, 'node_modules/skep-probe/server.mjs'));
const manifest = { name: 'skep-probe', version: '1.0.0', bin: './server.mjs' };
writeFileSync(path.join(tree, 'node_modules/skep-probe/package.json'), JSON.stringify(manifest));
writeFileSync(path.join(tree, 'package.json'), treeManifest('skep-probe'));

const spec: WorkloadSpec = {
  name: 'prober',
  reference,
  args: [],
  env: {},
  labels: {},
  stdio: true,
  mounts: [],
  network: 'none',
  ports: [],
  privileged: false,
  ...(JSON.parse(changes) as Partial<WorkloadSpec>),
};
const directories = { dataDir: path.join(directory, 'data'), cacheDir: path.join(directory, 'cache') };
const runtime = await openRuntime('sandbox', directories);
interface Asked {
  readonly port?: number;
  /** Called first, and not waited for. */
  readonly after?: readonly [method: string, params: object];
}

const OUTSIDE: Readonly<Record<string, (asked: Asked, probe: ProbeCaller) => Promise<unknown>>> = {
  'outside/read': ({ port }) => text(net.connect({ host: '127.0.0.1', port: port ?? 0 })),
  /** What its gateway decided. */
  'outside/traffic': () => runtime.traffic(spec.name),
  async 'outside/ends'({ after }, probe) {
    if (after !== undefined) probe.call(...after).catch(() => {});
    // Where others free as much as it takes, it is found out at the next look all the same, a minute later.
    const exitCode = await runtime.wait(spec.name, AbortSignal.timeout(180_000));
    return { exitCode, exceeded: (await runtime.inspect(spec.name))?.exceeded };
  },
  /** What it used in the end and at most, while somebody hosted it for some seconds. */
  async 'outside/uses'() {
    const over = AbortSignal.timeout(3_000);
    runtime.wait(spec.name, over).catch(() => {});
    let [most, last] = [0, { memory: 0, pids: 0 }];
    while (!over.aborted && (await runtime.inspect(spec.name))?.state === 'running') {
      last = usageOf(initOf(), Infinity) ?? { memory: 0, pids: 0 };
      most = Math.max(most, last.pids);
      await pause(50);
    }
    const { state } = (await runtime.inspect(spec.name)) ?? {};
    return { memory: state === 'running' ? last.memory : 0, mostProcesses: most };
  },
  /** The names in its home, once it has put something there, or was hosted for long enough to. */
  async 'outside/keeps'() {
    const over = AbortSignal.timeout(8_000);
    runtime.wait(spec.name, over).catch(() => {});
    const names = (): string[] => readdirSync(path.join(home, 'state/home'));
    const isRunning = async () => (await runtime.inspect(spec.name))?.state === 'running';
    while (!over.aborted && !names().includes('got') && (await isRunning())) await pause(50);
    return names();
  },
  async 'outside/log'() {
    const files = readdirSync(home).filter((name) => name.startsWith('output.log'));
    const lines = runtime.logs(spec.name, { follow: false, tail: 1, signal: AbortSignal.timeout(5_000) });
    const tail = (await Array.fromAsync(lines)).map(({ bytes }) => Buffer.from(bytes).toString()).join('');
    return { tail, bytes: files.reduce((sum, name) => sum + statSync(path.join(home, name)).size, 0) };
  },
};
const home = path.join(directories.dataDir, 'sandbox', spec.name);
const initOf = (): number =>
  (JSON.parse(readFileSync(path.join(home, 'run.json'), 'utf8')) as { init: { pid: number } }).init.pid;
const answers: unknown[] = [];
/** Ends the attachment, and with it the calls, before whoever started this loses patience. */
let late: NodeJS.Timeout | undefined;
try {
  await runtime.create(spec);
  const probe = new ProbeCaller(await runtime.attach(spec.name));
  await runtime.start(spec.name);
  late = setTimeout(() => probe.close(), 90_000);
  for (const [method, params] of JSON.parse(calls) as [string, Asked][]) {
    answers.push(
      await (OUTSIDE[method]?.(params, probe) ?? probe.call(method, params)).catch((error: unknown) => {
        const code = error instanceof ProbeError ? error.code : errnoOf(error);
        if (code !== undefined) return { code };
        throw error;
      }),
    );
  }
} finally {
  clearTimeout(late);
  await runtime.remove(spec.name);
}
process.stdout.write(`${JSON.stringify(answers)}\n`);
