// Run by the contract test in a process of its own: creates, attaches and starts a workload, prints "up" when it
// answers, and then holds it until it is killed. Arguments: kind, data directory, cache directory, spec as JSON.
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import type { WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { openRuntime } from './runtimes.ts';

const [kind, dataDir = '', cacheDir = '', spec = '{}'] = process.argv.slice(2);
const runtime = await openRuntime(kind === 'docker' ? 'docker' : 'sandbox', { dataDir, cacheDir });
const wanted = JSON.parse(spec) as WorkloadSpec;
await runtime.create(wanted);
const probe = new ProbeCaller(await runtime.attach(wanted.name));
await runtime.start(wanted.name);
await probe.call('ping');
process.stdout.write('up\n');
setInterval(() => {}, 1000);
