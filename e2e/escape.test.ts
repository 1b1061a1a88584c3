import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { EgressPolicy } from '@skep/cli/egress/policy.ts';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import type { WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { commandOf, hasEscaped, type Attempt, type Facts } from './escape/attempt.ts';
import { FILE_ATTEMPTS, KERNEL_ATTEMPTS, PROCESS_ATTEMPTS, SOCKET_ATTEMPTS } from './escape/machine-attempts.ts'; // prettier-ignore
import { CONTAINER_ATTEMPTS, NAMES, NETWORK_ATTEMPTS } from './escape/network-attempts.ts';
import { ORDINARY, Range, type Through } from './escape/range.ts';
import { privateEngine } from './fixtures/private-engine.ts';
import { MACHINE, smallInternet, type SmallInternet } from './fixtures/small-internet.ts';
import { engine as ask, ensureEscapeImage } from './images.ts';
import { component, title } from './require.ts';
import { openRuntime, TEST_TOKEN } from './runtimes.ts';

const sandbox = await component('sandbox');
const engine = await component('engine');
const ownEngine = await component('private-engine');
const asRoot = process.getuid?.() === 0;
const users: [string, 'root' | 'ordinary', number][] = asRoot
  ? [
      ['root', 'root', 0],
      ['an ordinary user', 'ordinary', ORDINARY],
    ]
  : [['an ordinary user', 'ordinary', process.getuid?.() ?? 0]];
const ATTEMPTS = [...FILE_ATTEMPTS, ...SOCKET_ATTEMPTS, ...PROCESS_ATTEMPTS, ...KERNEL_ATTEMPTS];
const PROBE = path.join(import.meta.dirname, 'fixtures/probe-server.mjs');

/** What each attempt gave where nothing confines it, and where the workload is confined. */
type Outcomes = ReadonlyMap<Attempt, { readonly free: unknown; readonly confined: unknown }>;

/** A service of the machine, at one of its addresses. */
const SERVICE = 'require("node:http").createServer((_asked, answer) => answer.end("x at y")).listen(8088, process.argv[1], () => console.log("up"))'; // prettier-ignore

/** Asks the probe server in the sandbox, in a process of the user's own, for all of them. */
async function inSandbox(
  range: Range,
  attempts: readonly Attempt[],
  spec: Partial<WorkloadSpec>,
  through?: Through,
): Promise<unknown[]> {
  const facts = range.confinedFacts('/app/package.json');
  const calls = attempts.map((one) => {
    const [file, args] = commandOf(one, facts);
    return ['probe/run', { file, args }];
  });
  const prober = path.join(import.meta.dirname, 'sandbox-prober.ts');
  const directory = path.join(range.directory, 'prober');
  const given = [directory, JSON.stringify({ ...range.mounts, ...spec }), JSON.stringify(calls)];
  const child = range.start([process.execPath, prober, ...given], through);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (child.exitCode !== 0) throw new Error(`the prober failed: ${stderr}`);
  return JSON.parse(stdout) as unknown[];
}

interface Contained {
  readonly spec?: Partial<WorkloadSpec>;
  readonly facts?: Facts;
}

async function inContainer(
  range: Range,
  attempts: readonly Attempt[],
  { spec = {}, facts = range.confinedFacts('/server.mjs') }: Contained = {},
): Promise<unknown[]> {
  const reference = await ensureEscapeImage(readFileSync(PROBE, 'utf8'));
  const directories = { dataDir: range.directory, cacheDir: range.directory };
  const runtime = await openRuntime('docker', directories);
  const name = `escape-${TEST_TOKEN}`;
  const labels = { 'skep.test': 'escape' };
  const given = { args: [], env: {}, labels, ports: [], privileged: false, stdio: true, network: 'bridge' };
  const answers: unknown[] = [];
  try {
    await runtime.create({ ...given, name, reference, ...range.mounts, ...spec });
    const probe = new ProbeCaller(await runtime.attach(name));
    await runtime.start(name);
    for (const one of attempts) {
      const [file, args] = commandOf(one, facts);
      answers.push(await probe.call('probe/run', { file, args }));
    }
  } finally {
    await runtime.remove(name);
  }
  return answers;
}

/** One after the other, because some change what others read. */
async function freely(range: Range, attempts: readonly Attempt[]): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const one of attempts) answers.push(await range.unconfined(one));
  return answers;
}

const outcomes = (
  attempts: readonly Attempt[],
  free: readonly unknown[],
  confined: readonly unknown[],
): Outcomes => new Map(attempts.map((one, at) => [one, { free: free[at], confined: confined[at] }]));

/** Everything that got out where nothing held it must be held; where this kernel holds it anyway, that is shown. */
function judge(who: 'root' | 'ordinary', attempts: readonly Attempt[], found: () => Outcomes): void {
  test.each(attempts.map((one) => [one.name, one] as const))('%s: in vain', async (_name, attempt) => {
    const { free, confined } = found().get(attempt) ?? {};
    const isOpen = (attempt.open ?? who) === who;
    if (isOpen && attempt.kernel !== true) expect(free, 'unconfined it works').toSatisfy(hasEscaped);
    expect(confined).toMatchObject({ stdout: expect.any(String) });
    expect(confined).not.toSatisfy(hasEscaped);
  });
}

describe.skipIf(!sandbox.available).each(users)(
  title('from the sandbox, started by %s, a server', sandbox),
  (_who, who, uid) => {
    const attempts = ATTEMPTS.filter(({ on }) => on !== 'engine');
    let found: Outcomes;
    beforeAll(async () => {
      await using range = await Range.make(uid);
      const free = await freely(range, attempts);
      found = outcomes(attempts, free, await inSandbox(range, attempts, { network: 'bridge' }));
    });
    judge(who, attempts, () => found);
  },
);

// What the kernel forbids an ordinary user, root of this machine shows.
describe.skipIf(!engine.available || !asRoot)(title('from a container a server', engine), () => {
  const attempts = ATTEMPTS.filter(({ on, open }) => on !== 'sandbox' && open !== 'ordinary');
  let found: Outcomes;
  beforeAll(async () => {
    await using range = await Range.make(0);
    const free = await freely(range, attempts);
    found = outcomes(attempts, free, await inContainer(range, attempts));
  });
  judge('root', attempts, () => found);
});

describe.skipIf(!sandbox.available || !asRoot).each(users)(
  title('from an isolated sandbox, started by %s, a server', sandbox),
  (_who, who, uid) => {
    let found: Outcomes;
    beforeAll(async () => {
      using internet: SmallInternet = await smallInternet(NAMES);
      const through: Through = (command) => internet.through(command);
      await using range = await Range.make(uid);
      const isolation: EgressPolicy = { workload: 'prober', allowAll: false, hosts: ['api.example'], ports: [80, 443], inbound: [], runtimeGateway: false }; // prettier-ignore
      const service = range.start([process.execPath, '-e', SERVICE, MACHINE], through);
      await once(service.stdout, 'data');
      const free: unknown[] = [];
      for (const one of NETWORK_ATTEMPTS) free.push(await range.unconfined(one, through));
      found = outcomes(NETWORK_ATTEMPTS, free, await inSandbox(range, NETWORK_ATTEMPTS, { isolation, network: 'bridge' }, through)); // prettier-ignore
      service.kill();
    });
    judge(who, NETWORK_ATTEMPTS, () => found);
  },
);

/** Another workload of the engine, which serves at its port 3000; isolated where it has a way in. */
async function another(name: string, more: Partial<WorkloadSpec>): Promise<AsyncDisposable> {
  const reference = await ensureEscapeImage(readFileSync(PROBE, 'utf8'));
  const runtime = await openRuntime('docker', { dataDir: tmpdir(), cacheDir: tmpdir() });
  const remove = () => runtime.remove(name);
  const given = { args: [], env: {}, labels: { 'skep.test': 'escape' }, mounts: [], ports: [] };
  await runtime.create({ ...given, name, reference, privileged: false, stdio: true, network: 'bridge', ...more }); // prettier-ignore
  const probe = new ProbeCaller(await runtime.attach(name));
  await runtime.start(name);
  expect(await probe.call('probe/serve', { port: 3000 })).toBe('listening');
  return { [Symbol.asyncDispose]: remove };
}

async function addressOf(name: string): Promise<string> {
  const { text: body } = await ask('GET', `/containers/${name}/json`);
  const { NetworkSettings } = JSON.parse(body) as {
    NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
  };
  return Object.values(NetworkSettings.Networks)[0]?.IPAddress ?? '';
}

// On an engine in that internet: its containers without confinement are on the network of that machine.
describe.skipIf(!ownEngine.available)(title('from an isolated container a server', ownEngine), () => {
  const attempts = [...NETWORK_ATTEMPTS, ...CONTAINER_ATTEMPTS];
  let found: Outcomes;
  beforeAll(async () => {
    using internet: SmallInternet = await smallInternet(NAMES);
    const through: Through = (command) => internet.through(command);
    const own = privateEngine(through);
    await using ending = new AsyncDisposableStack();
    ending.defer(() => own.end());
    await own.start();
    vi.stubEnv('DOCKER_HOST', `unix://${own.socket}`);
    ending.defer(() => void vi.unstubAllEnvs());
    await using range = await Range.make(0);
    const service = range.start([process.execPath, '-e', SERVICE, MACHINE], through);
    ending.defer(() => void service.kill());
    await once(service.stdout, 'data');
    const isolation: EgressPolicy = { workload: 'escape', allowAll: false, hosts: ['api.example'], ports: [80, 443], inbound: [], runtimeGateway: false }; // prettier-ignore
    const ports = [{ hostIp: '127.0.0.1', hostPort: DOOR, containerPort: 3000 }];
    await using _plain = await another('escape-plain', {});
    await using _isolated = await another('escape-isolated', { isolation, ports });
    const facts = {
      ...range.confinedFacts('/server.mjs'),
      other: await addressOf('escape-plain'),
      door: DOOR,
    };
    const free = await inContainer(range, attempts, { spec: { network: 'host' }, facts });
    found = outcomes(attempts, free, await inContainer(range, attempts, { spec: { isolation }, facts }));
  }, 300_000);
  judge('root', attempts, () => found);
});

/** In the namespace of that engine, where nobody else listens. */
const DOOR = 4100;
