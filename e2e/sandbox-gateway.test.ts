import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'; // prettier-ignore
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { freePort } from './fixtures/free-port.ts';
import { probePackage } from './fixtures/probe-package.ts';
import { component, title } from './require.ts';
import { openRuntime } from './runtimes.ts';
import { signal } from './skep.ts';

const sandbox = await component('sandbox');
const slirp = await component('slirp');
/** What every confined program has, what Node adds for its channel, and what the gateway is told. */
const OWN_VARIABLES =
  /^(?:|HOME|LANG|PATH|PWD|TMPDIR|USER|SKEP_GATEWAY|NODE_CHANNEL_\w+|MALLOC_\w+|GLIBC_TUNABLES)$/;
const NOTHING = { allowAll: false, hosts: [], ports: [], inbound: [], runtimeGateway: false };

describe.skipIf(!sandbox.available)(title('the gateway of a sandboxed workload', sandbox), () => {
  let directory: string;
  let runtime: Runtime;
  let reference: string;
  let directories: { readonly dataDir: string; readonly cacheDir: string };
  beforeEach(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'skep-gateway-'));
    directories = { dataDir: path.join(directory, 'data'), cacheDir: path.join(directory, 'cache') };
    reference = probePackage(directories.cacheDir);
    runtime = await openRuntime('sandbox', directories);
  });
  afterEach(async () => {
    for (const { name } of await runtime.list()) await runtime.remove(name);
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
    rmSync(directory, { recursive: true });
  });

  /** Processes that write below this test's directory: of the workload and of its gateway. */
  function left(): readonly { readonly pid: number; readonly file: string; readonly program: string }[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        const file = linkOf(`/proc/${pid}/fd/2`);
        if (!file.startsWith(directory)) return [];
        return [
          { pid: Number(pid), file: path.basename(file), program: path.basename(linkOf(`/proc/${pid}/exe`)) },
        ];
      });
  }

  const at = (name: string) => path.join(directories.dataDir, 'sandbox/gated', name);
  const gateways = () => left().filter(({ file, program }) => file === 'gateway.log' && program === 'node');

  function spec(more: Partial<WorkloadSpec> = {}): WorkloadSpec {
    const isolation = { workload: 'gated', ...NOTHING };
    const base = {
      name: 'gated',
      reference,
      args: [],
      env: {},
      labels: {},
      mounts: [],
      ports: [],
    };
    return { ...base, stdio: true, network: 'bridge', privileged: false, isolation, ...more };
  }

  async function run(more: Partial<WorkloadSpec> = {}): Promise<ProbeCaller> {
    await runtime.create(spec(more));
    const probe = new ProbeCaller(await runtime.attach('gated'));
    await runtime.start('gated');
    await probe.call('ping');
    return probe;
  }

  async function ports(): Promise<WorkloadSpec['ports']> {
    return [{ hostIp: '127.0.0.1', hostPort: await freePort(), containerPort: await freePort() }];
  }

  test('is one process without ports, and two with', async () => {
    await run();
    expect(gateways()).toHaveLength(1);
    await runtime.remove('gated');
    await run({ ports: await ports() });
    expect(gateways()).toHaveLength(2);
  });

  test('is no root, sees no file of this machine and holds nothing that was left open', async () => {
    await run({ ports: await ports() });
    for (const { pid } of gateways()) {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      expect(status).toMatch(/^CapEff:\t0+$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(status).toMatch(/^Seccomp:\t2$/m);
      if (process.getuid?.() === 0) expect(status).not.toMatch(/^Uid:\t.*\b0\b/m);
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
        .split('\0')
        .map((one) => one.split('=')[0]);
      expect(environment.filter((name) => !OWN_VARIABLES.test(name ?? ''))).toEqual([]);
      expect(readdirSync(`/proc/${pid}/root`)).not.toEqual(expect.arrayContaining(['root']));
      expect(readdirSync(`/proc/${pid}/root/home`)).toEqual(['skep']);
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
      const files = open.filter((one) => one.startsWith('/') && !one.startsWith('/dev/'));
      expect(files.map((one) => path.basename(one)).toSorted()).toEqual([
        'decisions.jsonl',
        'gateway.log',
        'life',
      ]);
    }
  });

  test.each(['gate', 'entry'])(
    'ends its workload when it is killed (%s), says so, and comes back with it',
    async (which) => {
      const probe = await run({ ports: await ports() });
      const waiting = runtime.wait('gated', AbortSignal.timeout(20_000));
      // The gateway itself is started first.
      const [gate, entry] = gateways().toSorted((one, other) => one.pid - other.pid);
      process.kill((which === 'gate' ? gate : entry)?.pid ?? 0, 'SIGKILL');
      expect(await waiting).not.toBe(0);
      probe.close();
      expect(readFileSync(path.join(directories.dataDir, 'sandbox/gated/output.log'), 'utf8')).toContain(
        'skep: what leads this server to its network ended',
      );
      await expect.poll(left).toEqual([]);
      const attached = await runtime.attach('gated').catch(() => undefined);
      expect(attached).toBeUndefined();
      await runtime.start('gated');
      expect(gateways()).toHaveLength(2);
    },
  );

  test.skipIf(!slirp.available)(
    title('ends its workload when it is killed, also where it is slirp4netns, and comes back with it', slirp),
    async () => {
      const { isolation: _, ...connected } = spec({ ports: await ports() });
      const started = async (): Promise<number> => {
        await runtime.start('gated');
        // It holds this pipe; its own confinement hides its paths.
        const pipe = statSync(at('gate')).ino;
        const isIt = (pid: string): boolean =>
          path.basename(linkOf(`/proc/${pid}/exe`)) === 'slirp4netns' &&
          readdirSync(`/proc/${pid}/fd`).some((fd) => statSync(`/proc/${pid}/fd/${fd}`).ino === pipe);
        const [pid, ...more] = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isIt(name));
        expect(more).toEqual([]);
        return Number(pid);
      };
      await runtime.create(connected);
      const pid = await started();
      const waiting = runtime.wait('gated', AbortSignal.timeout(20_000));
      process.kill(pid, 'SIGKILL');
      expect(await waiting).not.toBe(0);
      expect(readFileSync(at('output.log'), 'utf8')).toContain(
        'skep: what leads this server to its network ended',
      );
      const next = await started();
      expect(next).not.toBe(pid);
      await runtime.stop('gated', 1000);
      expect(readFileSync(at('output.log'), 'utf8').match(/skep: what leads/g)).toHaveLength(1);
    },
  );

  test('leads out no more once it is dead, even while nobody waits for its workload', async () => {
    const probe = await run({ isolation: { workload: 'gated', ...NOTHING, allowAll: true } });
    expect(await probe.call('probe/connect', { host: '127.77.0.1', port: 3128 })).toBe('connected');
    for (const { pid } of gateways()) process.kill(pid, 'SIGKILL');
    // Of a process that is ending the program goes first, then what it has open, and then what waits for it.
    await expect.poll(() => left().filter(({ file }) => file === 'gateway.log')).toEqual([]);
    await expect(probe.call('probe/connect', { host: '127.77.0.1', port: 3128 })).rejects.toThrow();
    await expect(probe.call('probe/connect', { host: '192.0.2.1', port: 443 })).rejects.toThrow();
    expect(await probe.call('probe/interfaces')).toEqual(['lo']);
  });

  test('ends with its workload, however that ends', async () => {
    const probe = await run({ ports: await ports() });
    await probe.call('probe/exit', { code: 3 }).catch(() => {});
    expect(await runtime.wait('gated', AbortSignal.timeout(20_000))).toBe(3);
    await expect.poll(left).toEqual([]);
    await runtime.start('gated');
    // Of these each may take others with it.
    const pids = left().filter(({ file }) => file !== 'gateway.log');
    signal(
      pids.map(({ pid }) => pid),
      'SIGKILL',
    );
    await expect.poll(left).toEqual([]);
  });

  test('that hangs is ended with its workload', async () => {
    await run({ ports: await ports() });
    for (const { pid } of gateways()) process.kill(pid, 'SIGSTOP');
    await runtime.stop('gated', 0);
    expect(left()).toEqual([]);
  });

  test('has its port again at once after a stop', async () => {
    const taken = await ports();
    (await run({ ports: taken })).close();
    for (let round = 0; round < 3; round += 1) {
      await runtime.stop('gated', 0);
      await runtime.start('gated');
    }
    const socket = net.connect(taken[0]?.hostPort ?? 0, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });

  test('that cannot have its port leaves nothing, and says which', async () => {
    await using busy = net.createServer().listen(0, '127.0.0.1');
    await once(busy, 'listening');
    const { port } = busy.address() as net.AddressInfo;
    const ports = [{ hostIp: '127.0.0.1', hostPort: port, containerPort: 3000 }];
    await expect(run({ ports })).rejects.toMatchObject({
      code: 'runtime/start-failed',
      message: expect.stringContaining(`port ${port} of 127.0.0.1 cannot be forwarded`),
    });
    await expect.poll(left).toEqual([]);
    expect(await runtime.inspect('gated')).toMatchObject({ state: 'created' });
  });

  test.each<[string, () => boolean]>([
    ['the workload is made', () => existsSync(at('workload.json'))],
    ['its start is noted', () => existsSync(at('run.json'))],
    ['its sandbox is begun', () => left().length > 0],
    ['its gateway is begun', () => existsSync(at('decisions.jsonl'))],
    ['its gateway runs', () => gateways().length >= 1],
    ['what opens sockets runs beside it', () => gateways().length === 2],
    ['its server runs', () => existsSync(at('output.log')) && readFileSync(at('output.log'), 'utf8') !== ''],
  ])('leaves no process when its supervisor is killed once %s', async (_when, isThere) => {
    const holder = path.join(import.meta.dirname, 'runtime-holder.ts');
    const given = JSON.stringify(spec({ ports: await ports() }));
    const args = [holder, 'sandbox', directories.dataDir, directories.cacheDir, given];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    // However it goes: one that stays would keep the whole run from ending.
    onTestFinished(() => void child.kill('SIGKILL'));
    await vi.waitUntil(() => isThere(), { timeout: 20_000, interval: 1 });
    child.kill('SIGKILL');
    await once(child, 'exit');
    await runtime.remove('gated');
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
  });

  test('goes on without its supervisor', async () => {
    const holder = path.join(import.meta.dirname, 'runtime-holder.ts');
    const given = JSON.stringify(spec());
    const args = [holder, 'sandbox', directories.dataDir, directories.cacheDir, given];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const probe = new ProbeCaller(await runtime.attach('gated'));
    const refused = probe.call('probe/fetch', { url: 'http://example.com/' });
    await expect(refused).rejects.toThrow();
    expect(await runtime.traffic('gated')).toContainEqual(
      expect.objectContaining({ decision: 'denied', host: 'example.com' }),
    );
  });
});

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}
