// Run in a process of its own, also as another user than the tests: starts the probe server in the sandbox, calls it, and
// prints what each call gave as one JSON line; `outside/read` reads from a port of this machine, `outside/traffic` is what its
// gateway decided. Arguments: a directory of this user's, changes to the spec, the calls.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { errnoOf } from '@skep/core/files/errno.ts';
import { ProbeCaller, ProbeError } from '@skep/cli/runtime/contract/probe-caller.ts';
import type { WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { treeManifest } from '@skep/cli/runtime/sandbox/package-trees.ts';
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
const answers: unknown[] = [];
/** Ends the attachment, and with it the calls, before whoever started this loses patience. */
let late: NodeJS.Timeout | undefined;
try {
  await runtime.create(spec);
  const probe = new ProbeCaller(await runtime.attach(spec.name));
  await runtime.start(spec.name);
  late = setTimeout(() => probe.close(), 40_000);
  for (const [method, params] of JSON.parse(calls) as [string, { port?: number }][]) {
    answers.push(
      await answerTo(method, params, probe).catch((error: unknown) => {
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

function answerTo(method: string, params: { readonly port?: number }, probe: ProbeCaller): Promise<unknown> {
  if (method === 'outside/read') return readFrom(params);
  if (method === 'outside/traffic') return runtime.traffic(spec.name);
  return probe.call(method, params);
}

async function readFrom({ port }: { readonly port?: number }): Promise<string> {
  return text(net.connect({ host: '127.0.0.1', port: port ?? 0 }));
}
